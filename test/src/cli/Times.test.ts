import { assert, describe, it } from "@effect/vitest"
import { Duration } from "effect"
import { parseDuration, parseSince } from "../../../src/cli/Times.ts"

const millis = (text: string) => {
  const duration = parseDuration(text)
  return duration === undefined ? undefined : Duration.toMillis(duration)
}

describe("Times", () => {
  it("durations are read as typed", () => {
    const read = {
      "10s": 10_000,
      "250ms": 250,
      "1h": 3_600_000,
      "1.5h": 5_400_000,
      "10 minutes": 600_000,
      "7d": 604_800_000,
    }
    for (const [text, expected] of Object.entries(read)) assert.strictEqual(millis(text), expected, text)
    for (const text of ["", "10", "s", "-1s", "1 fortnight", "1h30m", "10  s", "1e3s", "constructor", "1constructor"]) {
      assert.isUndefined(millis(text), text)
    }
  })

  it("times are read, and durations before now", () => {
    const now = Date.parse("2026-02-01T00:00:00Z")
    assert.strictEqual(parseSince("1h", now), now - 3_600_000)
    assert.strictEqual(parseSince("2026-01-31", now), Date.parse("2026-01-31T00:00:00Z"))
    assert.strictEqual(parseSince("2026-01-31T12:00:00.5+01:00", now), Date.parse("2026-01-31T11:00:00.500Z"))
    for (const text of ["yesterday", "2026-13-01", "2026-01-31T12:00:00", "12:00"]) {
      assert.isUndefined(parseSince(text, now), text)
    }
  })
})
