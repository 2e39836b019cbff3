import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import fc from "fast-check"
import { maxBytes, maxDepth, parse, parseText } from "../../../../services/platform/messaging/BoundedJson.ts"

const bytes = (text: string) => new TextEncoder().encode(text)
const reason = (data: Uint8Array) => {
  const parsed = parse(data)
  return Result.isFailure(parsed) ? parsed.failure.reason : "parsed"
}
const nested = (depth: number, open = "[", close = "]") => open.repeat(depth) + close.repeat(depth)

describe("BoundedJson", () => {
  it("parses as JSON.parse does, for any shallow and small JSON", () => {
    fc.assert(fc.property(fc.jsonValue({ maxDepth: 20 }), (value) => {
      const text = JSON.stringify(value)
      assert.deepStrictEqual(Result.getOrThrow(parse(bytes(text))), JSON.parse(text))
    }))
  })

  it("answers any bytes with a value, or a fault that repeats nothing of them", () => {
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array({ maxLength: 300 }), fc.string().map(bytes)), (data) => {
        const parsed = parse(data)
        if (Result.isSuccess(parsed)) return
        assert.include(["too_deep", "malformed_json"], parsed.failure.reason)
        assert.include(["not a JSON text", "not UTF-8", "more than 32 levels"], parsed.failure.detail)
      }),
    )
  })

  it("accepts 32 levels and 64 KiB, and no more", () => {
    assert.strictEqual(reason(bytes(nested(maxDepth))), "parsed")
    assert.strictEqual(reason(bytes(nested(maxDepth + 1))), "too_deep")
    assert.strictEqual(reason(bytes("[".repeat(60_000))), "too_deep")
    assert.strictEqual(reason(bytes(`{"a":`.repeat(maxDepth + 1) + "1" + "}".repeat(maxDepth + 1))), "too_deep")
    const fits = `"${"a".repeat(maxBytes - 2)}"`
    assert.strictEqual(reason(bytes(fits)), "parsed")
    assert.strictEqual(reason(bytes(`${fits} `)), "too_large")
  })

  it("does not count brackets in strings or side by side as depth", () => {
    for (const text of [`["${"[".repeat(500)}"]`, `["\\"${"{".repeat(500)}"]`, `[${"[],".repeat(500)}1]`]) {
      assert.strictEqual(reason(bytes(text)), "parsed")
    }
    assert.strictEqual(reason(bytes(`["\\\\", ${nested(maxDepth)}]`)), "too_deep")
  })

  it("bounds a text by its bytes in UTF-8", () => {
    const wide = `"${"\u00e4".repeat((maxBytes - 2) / 2)}"`
    assert.isTrue(Result.isSuccess(parseText(wide)))
    for (const text of [wide + " ", `"${"a".repeat(maxBytes)}"`]) {
      const parsed = parseText(text)
      assert.strictEqual(Result.isFailure(parsed) && parsed.failure.reason, "too_large")
    }
  })

  it("refuses bytes that are not UTF-8", () => {
    for (const data of [[0xff], [0x22, 0xc0, 0x80, 0x22], [0x22, 0xed, 0xa0, 0x80, 0x22], []]) {
      assert.strictEqual(reason(Uint8Array.from(data)), "malformed_json")
    }
  })
})
