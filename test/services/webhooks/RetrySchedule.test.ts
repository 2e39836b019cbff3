import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { maxAttempts, nextAttemptAt, specified } from "../../../services/webhooks/RetrySchedule.ts"

const minute = 60_000
const hour = 60 * minute

describe("RetrySchedule", () => {
  it("has the specification's eight delays", () => {
    assert.strictEqual(maxAttempts, 8)
    assert.deepStrictEqual(specified.delays, [
      minute,
      5 * minute,
      30 * minute,
      2 * hour,
      6 * hour,
      24 * hour,
      48 * hour,
      72 * hour,
    ])
    assert.strictEqual(specified.jitter, 0.1)
  })

  it("a retry is never early, at most its jitter late, and there is none after the eighth failure", () => {
    const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
    const at = fc.integer({ min: 0, max: 4_102_444_800_000 })
    const jitter = fc.double({ min: 0, max: 1, noNaN: true })
    fc.assert(fc.property(fc.integer({ min: 1, max: 7 }), at, random, jitter, (attempt, failedAt, random, jitter) => {
      const delay = specified.delays[attempt - 1]!
      const due = nextAttemptAt({ ...specified, jitter }, attempt, failedAt, random)!
      assert.isTrue(Number.isInteger(due))
      assert.isAtLeast(due, failedAt + delay)
      assert.isAtMost(due, Math.ceil(failedAt + delay * (1 + jitter)))
      assert.strictEqual(nextAttemptAt({ ...specified, jitter: 0 }, attempt, failedAt, random), failedAt + delay)
    }))
    fc.assert(fc.property(fc.integer({ min: 8, max: 1_000 }), at, random, (attempt, failedAt, random) => {
      assert.isNull(nextAttemptAt(specified, attempt, failedAt, random))
    }))
  })
})
