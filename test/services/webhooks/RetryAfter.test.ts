import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { maxRetryAfter, waitAskedBy } from "../../../services/webhooks/RetryAfter.ts"
import { nextAttemptAt, specified } from "../../../services/webhooks/RetrySchedule.ts"

const answeredAt = Date.parse("2026-03-10T12:00:00.000Z")
const dayMillis = 24 * 60 * 60_000

describe("Retry-After", () => {
  it("is a number of seconds, a day at most", () => {
    fc.assert(fc.property(fc.integer({ min: 0, max: 10 ** 12 }), (seconds) => {
      assert.strictEqual(waitAskedBy(`${seconds}`, answeredAt), Math.min(seconds * 1_000, dayMillis))
      assert.strictEqual(waitAskedBy(`${seconds} \t`, answeredAt), Math.min(seconds * 1_000, dayMillis))
    }))
    assert.strictEqual(maxRetryAfter, dayMillis)
  })

  it("is a date in any of its three forms", () => {
    const long = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
    fc.assert(fc.property(fc.integer({ min: -5 * 86_400, max: 86_400 }), (seconds) => {
      const at = new Date(answeredAt + seconds * 1_000)
      const fixed = at.toUTCString()
      const [name, day, month, year, time] = fixed.split(/,? /)
      const wait = Math.max(0, seconds * 1_000)
      assert.strictEqual(waitAskedBy(fixed, answeredAt), wait)
      const hyphens = `${long[at.getUTCDay()]}, ${day}-${month}-${year!.slice(2)} ${time} GMT`
      assert.strictEqual(waitAskedBy(hyphens, answeredAt), wait)
      const asctime = `${name} ${month} ${String(Number(day)).padStart(2)} ${time} ${year}`
      assert.strictEqual(waitAskedBy(asctime, answeredAt), wait)
    }))
  })

  it("of any other text asks for no wait, and no text for less than none or more than a day", () => {
    for (const text of ["", "soon", "-1", "+1", "1.5", "1e3", "0x10", "2026-03-11", "Mon, 39 Feb 2026 00:00:00 GMT"]) {
      assert.strictEqual(waitAskedBy(text, answeredAt), 0, text)
    }
    fc.assert(fc.property(fc.string(), fc.integer(), (text, at) => {
      const wait = waitAskedBy(text, at)
      assert.isTrue(wait >= 0 && wait <= dayMillis)
    }))
  })

  it("makes an attempt later and none earlier, and gives no ninth one", () => {
    const wait = fc.integer({ min: 0, max: dayMillis })
    const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
    fc.assert(fc.property(fc.integer({ min: 1, max: 7 }), wait, random, (attempt, wait, random) => {
      const usual = nextAttemptAt(specified, attempt, answeredAt, random)!
      const asked = nextAttemptAt(specified, attempt, answeredAt, random, wait)!
      assert.isAtLeast(asked, Math.max(usual, answeredAt + wait))
      assert.isAtMost(asked, Math.max(usual, Math.ceil(answeredAt + wait * 1.1)))
      assert.isNull(nextAttemptAt(specified, 8, answeredAt, random, wait))
    }))
  })
})
