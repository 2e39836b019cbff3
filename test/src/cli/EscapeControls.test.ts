import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { printable, printableJson, shortened } from "../../../src/cli/EscapeControls.ts"

const harmful = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u

describe("Printable", () => {
  it("escapes characters that move a cursor, reverse text or break a line", () => {
    assert.strictEqual(printable("\u001b[2J\u009b31m"), "\\u001b[2J\\u009b31m")
    assert.strictEqual(printable("a\u202eb\u2066c\u200fd"), "a\\u202eb\\u2066c\\u200fd")
    assert.strictEqual(printable("1\n2\r3\t4\u2028"), "1\\n2\\r3\\t4\\u2028")
    assert.strictEqual(printable("\u{e0041}"), "\\udb40\\udc41")
    assert.strictEqual(printable("Grüße, 世界 🙂"), "Grüße, 世界 🙂")
  })

  it.prop("keeps JSON equal, without a harmful character", [Schema.String, Schema.String], ([a, b]) => {
    const value = { [a]: b, turned: `\u202e${a}\u001b` }
    const text = printableJson(value)
    assert.notMatch(text, harmful)
    assert.deepStrictEqual(JSON.parse(text), value)
  })

  it("shortens by characters, never within one", () => {
    assert.strictEqual(shortened("🙂🙂🙂", 3), "🙂🙂🙂")
    assert.strictEqual(shortened("🙂🙂🙂🙂", 3), "🙂🙂…")
    assert.isAtMost(shortened("\n".repeat(100_000), 240).length, 240)
  })
})
