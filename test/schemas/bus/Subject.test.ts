import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { Subject } from "../../../schemas/bus/Subject.ts"

describe("Subject", () => {
  it("a plain id is its own token", () => {
    assert.strictEqual(Subject.token("019ab1c2-0000-7000-8000-000000000000"), "019ab1c2-0000-7000-8000-000000000000")
    assert.strictEqual(Subject.token("a".repeat(128)), "a".repeat(128))
  })

  it("any other id becomes ~ and 15 bytes of its SHA-256", () => {
    // printf 'a.b' | openssl dgst -sha256 -binary | head -c 15 | basenc --base64url
    assert.strictEqual(Subject.token("a.b"), "~LnM23I66h-9HLfVow1SC")
    assert.match(Subject.token(""), /^~[A-Za-z0-9_-]{20}$/)
    assert.match(Subject.token("a".repeat(129)), /^~[A-Za-z0-9_-]{20}$/)
  })

  it("any text becomes one valid token, and different texts different ones", () => {
    fc.assert(fc.property(fc.string({ unit: "binary", maxLength: 300 }), fc.string(), (a, b) => {
      assert.isTrue(Subject.isSubject(`x.v1.${Subject.token(a)}`))
      assert.strictEqual(Subject.token(a) === Subject.token(b), a === b)
    }))
  })

  it("an invalid subject is recognised before it is published", () => {
    for (const bad of ["", ".", "a.", "a..b", "a b", "a.*", "a.>", "a\r\nb", "ä", "x".repeat(5_000), "a\u0000"]) {
      assert.isFalse(Subject.isSubject(bad), JSON.stringify(bad.slice(0, 20)))
    }
  })
})
