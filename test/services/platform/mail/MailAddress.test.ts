import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { parse, sameAddress } from "../../../../services/platform/mail/MailAddress.ts"
import { runs } from "../../../support/Runs.ts"

const atom = fc.stringMatching(/^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]{1,12}$/)
const label = fc.stringMatching(/^[A-Za-z0-9]([A-Za-z0-9-]{0,10}[A-Za-z0-9])?$/)
const locals = fc.array(atom, { minLength: 1, maxLength: 4 }).map((atoms) => atoms.join("."))
const domains = fc.tuple(fc.array(label, { maxLength: 4 }), fc.stringMatching(/^[a-z]{2,8}$/))
  .map(([labels, top]) => [...labels, top].join("."))

describe("parse", () => {
  it("every dot-atom at every host name is split without loss", () => {
    fc.assert(fc.property(locals, domains, (local, domain) => {
      assert.deepStrictEqual(parse(`${local}@${domain}`), { local, domain })
    }))
  })

  it("only addresses that can stand in an envelope and a header are accepted", () => {
    const pieces = fc.constantFrom(
      "a",
      "B",
      "1",
      ".",
      "-",
      "@",
      "<",
      ">",
      " ",
      ",",
      '"',
      "\r\n",
      "\0",
      "é",
      "\u212a",
      "[",
      ":",
    )
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.array(pieces).map((all) => all.join(""))), (text) => {
        const parsed = parse(text)
        if (parsed === null) return
        assert.strictEqual(`${parsed.local}@${parsed.domain}`, text)
        assert.notMatch(text, /[^!-~]|[<>()[\]\\,;:"]/)
        assert.strictEqual(text.split("@").length, 2)
        assert.isAtMost(text.length, 254)
      }),
      { numRuns: runs(2_000) },
    )
  })

  it("the limits of RFC 5321 hold", () => {
    const a = (n: number) => "a".repeat(n)
    assert.isNotNull(parse(`${a(64)}@example.com`))
    assert.isNull(parse(`${a(65)}@example.com`))
    assert.isNotNull(parse(`a@${a(63)}.example`))
    assert.isNull(parse(`a@${a(64)}.example`))
    const long = `${a(64)}@${a(63)}.${a(63)}.${a(61)}`
    assert.strictEqual(long.length, 254)
    assert.isNotNull(parse(long))
    assert.isNull(parse(`${long}a`))
    const wrong = [
      ...["", "a", "@", "a@", "@b.example", ".a@b.example", "a.@b.example", "a..b@c.example", "a@b..example"],
      ...[
        "a@-b.example",
        "a@b-.example",
        "a@b.example.",
        "a@b_c.example",
        "a@127.0.0.1",
        "a@[127.0.0.1]",
        "a@b@c.example",
      ],
      ...['"a b"@c.example', "a(c)@b.example", "A <a@b.example>", " a@b.example", "a@b.example\n", "a@b.exämple"],
    ]
    for (const text of wrong) assert.isNull(parse(text), text)
    assert.isNotNull(parse("root@localhost"))
  })
})

describe("sameAddress", () => {
  it("ASCII case alone is ignored", () => {
    fc.assert(fc.property(locals, domains, (local, domain) => {
      const address = `${local}@${domain}`
      assert.isTrue(sameAddress(address.toLowerCase(), address.toUpperCase()))
    }))
    fc.assert(fc.property(fc.string({ unit: "binary" }), fc.string({ unit: "binary" }), (a, b) => {
      const ascii = (text: string) => text.replaceAll(/[\x41-\x5a]/g, (letter) => letter.toLowerCase())
      assert.strictEqual(sameAddress(a, b), ascii(a) === ascii(b))
    }))
    assert.strictEqual("\u212a".toLowerCase(), "k")
    assert.isFalse(sameAddress("\u212aate@example.com", "kate@example.com"))
    assert.isFalse(sameAddress("\u0130@example.com", "i\u0307@example.com"))
    assert.isFalse(sameAddress("\u017fam@example.com", "sam@example.com"))
  })
})
