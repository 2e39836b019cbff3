import { assert, describe, it } from "@effect/vitest"
import { readUuid, uuidParsing } from "../../../schemas/Validation/Uuid.ts"

/** Input and sentence as pydantic 2.13.5 gave them. */
const sentences: ReadonlyArray<readonly [string, string]> = [
  ["nope", "invalid character: found `n` at 1"],
  ["{nope}", "invalid character: found `n` at 2"],
  ["urn:uuid:zz", "invalid character: found `z` at 10"],
  ["0199f3a2-7c1e-7d0a-9b55-0d5c2f3e8a1é", "invalid character: found `é` at 36"],
  ["0199f3a2-7c1-e7d0a-9b55-0d5c2f3e8a11", "invalid group length in group 1: expected 4, found 3"],
  ["0199f3a-27c1e-7d0a-9b55-0d5c2f3e8a11", "invalid group length in group 0: expected 8, found 7"],
  ["0199f3a2-7c1e-7d0a-9b55-0d5c2f3e8a111", "invalid group length in group 4: expected 12, found 13"],
  ["{0199f3a2-7c1e-7d0a-9b55-0d5c2f3e8a1}", "invalid group length in group 4: expected 12, found 13"],
  ["", "invalid length: expected length 32 for simple format, found 0"],
  ["{}", "invalid group count: expected 5, found 1"],
  ["0199f3a27c1e7d0a9b550d5c2f3e8a1", "invalid length: expected length 32 for simple format, found 31"],
  ["----", "invalid group length in group 0: expected 8, found 0"],
  ["0199f3a2-7c1e-7d0a-9b55-0d5c2f3e8a11-1", "invalid group count: expected 5, found 6"],
]

describe("the fault of a wrong UUID", () => {
  for (const [text, sentence] of sentences) {
    it(JSON.stringify(text), () =>
      assert.deepStrictEqual(uuidParsing(text), {
        type: "uuid_parsing",
        msg: `Input should be a valid UUID, ${sentence}`,
        ctx: { error: sentence },
      }))
  }
})

describe("a right UUID", () => {
  const hyphenated = "0199f3a2-7c1e-7d0a-9b55-0d5c2f3e8a11"
  /** All forms that pydantic 2.13.5 accepts. */
  const forms = [
    hyphenated,
    hyphenated.toUpperCase(),
    hyphenated.replaceAll("-", ""),
    `{${hyphenated}}`,
    `urn:uuid:${hyphenated}`,
  ]
  for (const form of forms) it(form, () => assert.strictEqual(readUuid(form), hyphenated))

  it("any other text is refused", () => {
    for (const [text] of sentences) assert.isUndefined(readUuid(text), text)
  })
})
