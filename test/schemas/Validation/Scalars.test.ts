import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Schema } from "effect"
import { BodyBoolean, BodyInt, QueryBoolean, QueryInt, Text } from "../../../schemas/Validation/Scalars.ts"

const reads = <A, I>(schema: Schema.Codec<A, I>, sent: unknown): A | "refused" => {
  const exit = Schema.decodeUnknownExit(schema)(sent)
  return Exit.isSuccess(exit) ? exit.value : "refused"
}

describe("integers in pydantic's lax mode", () => {
  const strings: ReadonlyArray<readonly [string, number | "refused"]> = [
    ["5", 5],
    ["+5", 5],
    ["-5", -5],
    [" 5\n", 5],
    ["005", 5],
    ["1_000", 1000],
    ["1.0", 1],
    ["1.", "refused"],
    ["1_000.0", 1000],
    ["+-5", "refused"],
    ["1 000", "refused"],
    ["1.5", "refused"],
    ["_1", "refused"],
    ["1_", "refused"],
    ["1__0", "refused"],
    ["1e3", "refused"],
    ["0x10", "refused"],
    ["", "refused"],
    ["٣", "refused"],
    // Digits up to CPython's bound: an integer has no largest value.
    ["99999999999999999999", Number.MAX_SAFE_INTEGER],
    ["-99999999999999999999", Number.MIN_SAFE_INTEGER],
    ["9".repeat(4_300), Number.MAX_SAFE_INTEGER],
    ["9".repeat(4_301), "refused"],
  ]
  for (const [sent, expected] of strings) {
    it(JSON.stringify(sent).slice(0, 40), () => {
      assert.strictEqual(reads(QueryInt(), sent), expected)
      assert.strictEqual(reads(BodyInt(), sent), expected)
    })
  }

  it("numbers and booleans of a body are read as pydantic does", () => {
    assert.deepStrictEqual([5, 5.0, true, 5.5, null, {}, 2 ** 60].map((sent) => reads(BodyInt(), sent)), [
      5,
      5,
      1,
      "refused",
      "refused",
      "refused",
      Number.MAX_SAFE_INTEGER,
    ])
  })
})

describe("booleans in pydantic's lax mode", () => {
  it("every spelling is read in any case", () => {
    for (const sent of ["1", "on", "t", "true", "y", "yes", "TRUE", "Yes"]) {
      assert.strictEqual(reads(QueryBoolean, sent), true)
      assert.strictEqual(reads(BodyBoolean, sent), true)
    }
    for (const sent of ["0", "off", "f", "false", "n", "no", "False", "OFF"]) {
      assert.strictEqual(reads(QueryBoolean, sent), false)
      assert.strictEqual(reads(BodyBoolean, sent), false)
    }
    for (const sent of ["", " true", "2", "ja"]) assert.strictEqual(reads(QueryBoolean, sent), "refused")
    assert.deepStrictEqual([1, 0, 1.0, 2, 0.5, null, []].map((sent) => reads(BodyBoolean, sent)), [
      true,
      false,
      true,
      "refused",
      "refused",
      "refused",
      "refused",
    ])
  })
})

describe("text", () => {
  it("length is counted in code points", () => {
    assert.strictEqual(reads(Text(2, 3), "𝒳"), "refused")
    assert.strictEqual(reads(Text(2, 3), "𝒳𝒳𝒳"), "𝒳𝒳𝒳")
    assert.strictEqual(reads(Text(2, 3), "𝒳𝒳𝒳𝒳"), "refused")
  })

  it("characters that a database cannot store are refused", () => {
    assert.strictEqual(reads(Text(0, 9), "a\u0000"), "refused")
    assert.strictEqual(reads(Text(0, 9), "\ud83d"), "refused")
  })
})

describe("every scalar generates values that it accepts", () => {
  const kinds = {
    text: Text(2, 200),
    exact: Text(64, 64),
    queryInt: QueryInt({ min: -3, max: 100 }),
    bodyInt: BodyInt({ min: 1 }),
    queryBoolean: QueryBoolean,
    bodyBoolean: BodyBoolean,
  }
  for (const [name, schema] of Object.entries(kinds)) {
    it.effect.prop(name, [schema as Schema.Codec<unknown, unknown>], ([value]) =>
      Effect.gen(function* () {
        const sent = yield* Schema.encodeUnknownEffect(schema as Schema.Codec<unknown, unknown>)(value)
        assert.deepStrictEqual(reads(schema as Schema.Codec<unknown, unknown>, sent), value)
      }))
  }
})
