import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { Subject } from "../../../schemas/bus/Subject.ts"

describe("Subject", () => {
  it("leaves a plain id as it is", () => {
    assert.strictEqual(Subject.token("019ab1c2-0000-7000-8000-000000000000"), "019ab1c2-0000-7000-8000-000000000000")
    assert.strictEqual(Subject.token("a".repeat(128)), "a".repeat(128))
  })

  it("gives ~ and 15 bytes of the SHA-256 for everything else", () => {
    // printf 'a.b' | openssl dgst -sha256 -binary | head -c 15 | basenc --base64url
    assert.strictEqual(Subject.token("a.b"), "~LnM23I66h-9HLfVow1SC")
    assert.match(Subject.token(""), /^~[A-Za-z0-9_-]{20}$/)
    assert.match(Subject.token("a".repeat(129)), /^~[A-Za-z0-9_-]{20}$/)
  })

  it("makes one good token of any text, and different ones of different texts", () => {
    fc.assert(fc.property(fc.string({ unit: "binary", maxLength: 300 }), fc.string(), (a, b) => {
      assert.isTrue(Subject.isSubject(`x.v1.${Subject.token(a)}`))
      assert.strictEqual(Subject.token(a) === Subject.token(b), a === b)
    }))
  })

  it("knows what may not be published to", () => {
    for (const bad of ["", ".", "a.", "a..b", "a b", "a.*", "a.>", "a\r\nb", "ä", "x".repeat(5_000), "a\u0000"]) {
      assert.isFalse(Subject.isSubject(bad), JSON.stringify(bad.slice(0, 20)))
    }
  })
})
