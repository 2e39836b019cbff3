import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import fc from "fast-check"
import { parse } from "../../../schemas/Validation/Json.ts"

describe("broken JSON", () => {
  /** What Python 3.12's `json.loads` says of the same text: `JSONDecodeError.pos` and `.msg`. */
  const cases: ReadonlyArray<readonly [string, number, string]> = [
    ["{", 1, "Expecting property name enclosed in double quotes"],
    ['{"a"', 4, "Expecting ':' delimiter"],
    ['{"a" 1}', 5, "Expecting ':' delimiter"],
    ['{"a": }', 6, "Expecting value"],
    ['{"a": 1', 7, "Expecting ',' delimiter"],
    ['{"a": 1 "b"}', 8, "Expecting ',' delimiter"],
    ['{"a": 1,}', 8, "Expecting property name enclosed in double quotes"],
    ["[1,]", 3, "Expecting value"],
    ["[1 2]", 3, "Expecting ',' delimiter"],
    ["{} x", 3, "Extra data"],
    ["01", 1, "Extra data"],
    ["nul", 0, "Expecting value"],
    [" ", 1, "Expecting value"],
    ['"abc', 0, "Unterminated string starting at"],
    ['"a\nb"', 2, "Invalid control character at"],
    ['"\\x"', 1, "Invalid \\escape"],
    ['"\\u12"', 2, "Invalid \\uXXXX escape"],
    ['{"𝒳": x}', 6, "Expecting value"],
  ]
  for (const [text, pos, error] of cases) {
    it(JSON.stringify(text), () => assert.deepStrictEqual(Result.getOrThrow(Result.flip(parse(text))), { pos, error }))
  }

  it("a text that nests deeper than 32 levels is never parsed", () => {
    assert.isTrue(Result.isSuccess(parse("[".repeat(32) + "]".repeat(32))))
    assert.deepInclude(Result.getOrThrow(Result.flip(parse("[".repeat(100_000)))), { pos: 32 })
    assert.isTrue(Result.isSuccess(parse(JSON.stringify("[{".repeat(100) + '"'))))
  })

  it("a text with more members, lists or objects than a body may have is never parsed", () => {
    const members = (n: number) => `{${Array.from({ length: n }, (_, i) => `"${i}":":{["`).join(",")}}`
    assert.isTrue(Result.isSuccess(parse(members(5_000))))
    assert.deepInclude(Result.getOrThrow(Result.flip(parse(members(5_001)))), { error: "More than 5000 members" })
    const lists = (n: number) => `[${Array(n - 1).fill("[]").join(",")}]`
    assert.isTrue(Result.isSuccess(parse(lists(5_000))))
    assert.deepStrictEqual(Result.getOrThrow(Result.flip(parse(lists(5_001)))), {
      pos: 1 + 3 * 4_999,
      error: "More than 5000 lists and objects",
    })
    assert.isTrue(Result.isSuccess(parse(`[${Array(60_000).fill("1").join(",")}]`)))
  })

  it("every cut text is reported where it breaks, and every whole one is read as JSON.parse does", () => {
    fc.assert(fc.property(fc.jsonValue({ maxDepth: 5 }), fc.nat(), (value, cut) => {
      const text = JSON.stringify(value)
      assert.deepStrictEqual(Result.getOrThrow(parse(text)), JSON.parse(text))
      const part = text.slice(0, cut % text.length)
      const read = parse(part)
      if (Result.isFailure(read)) assert.isAtMost(read.failure.pos, [...part].length)
    }))
  })
})
