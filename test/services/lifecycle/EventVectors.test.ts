/**
 * The transmitter's canonical JSON against RFC 8785's own numbers, and against the consumer's: if their digests
 * differed, every product would close access.
 */
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { canonical, digestOf } from "../../../services/platform/security/CanonicalJson.ts"
import * as Consumers from "../../../sdk/Canonical.ts"
import { numbers } from "../../sdk/Numbers.ts"

describe("Canonical", () => {
  it("RFC 8785, appendix B: numbers", () => {
    for (const { bits, text, value } of numbers) {
      if (text === null) assert.throws(() => canonical(value), undefined, undefined, bits)
      else assert.strictEqual(canonical(value), text, bits)
    }
  })

  it("RFC 8785, 3.2.2 and 3.2.3: literals, strings, the order of members", () => {
    const value = JSON.parse(
      '{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],' +
        '"string":"\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/","literals":[null,true,false]}',
    )
    assert.strictEqual(
      canonical(value),
      '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],' +
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
    )
    const sorting = { "\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\ud83d\ude00": 5, "\u0080": 6, "\u00f6": 7 }
    assert.strictEqual(canonical(sorting), '{"\\r":2,"1":4,"\u0080":6,"ö":7,"€":1,"😀":5,"\ufb33":3}')
  })

  it("the transmitter and the consumer write the same bytes and the same digest", () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: "binary", maxDepth: 4 }), (value) => {
        const said = JSON.parse(JSON.stringify(value))
        const text = canonical(said)
        assert.strictEqual(Consumers.canonical(said), text)
        assert.strictEqual(Consumers.digestOf(said), digestOf(said))
        assert.deepStrictEqual(JSON.parse(text), JSON.parse(JSON.stringify(said)))
      }),
      { numRuns: 250 },
    )
  })

  it("a value without a canonical form is refused by both", () => {
    for (const text of ['["\\ud800"]', '{"\\udfff":0}', "[1e999]", "-1e999"]) {
      const value = JSON.parse(text)
      assert.throws(() => canonical(value), undefined, undefined, text)
      assert.throws(() => Consumers.canonical(value), undefined, undefined, text)
    }
  })
})
