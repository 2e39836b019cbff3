/** The sliding second of a rate, for sends at random times. */
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { SendRate } from "../../../../services/webhooks/Sender/SendRate.ts"

describe("SendRate", () => {
  it("no second has more starts than the rate, none waits that may begin, and an idle one remembers nothing", () => {
    const gap = fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 1_500 }), fc.double({ min: 0, max: 3, noNaN: true }))
    fc.assert(fc.property(fc.integer({ min: 1, max: 8 }), fc.array(gap, { maxLength: 200 }), (perSecond, gaps) => {
      const rate = new SendRate(perSecond)
      const starts: Array<number> = []
      let now = 0
      for (const millis of gaps) {
        now += millis
        const free = rate.freeAt(now)
        const inLast = (at: number) => starts.filter((start) => start + 1_000 > at).length
        assert.strictEqual(free <= now, inLast(now) < perSecond)
        if (free > now) assert.isTrue(inLast(free) < perSecond && inLast(free - 0.001) >= perSecond)
        now = Math.max(now, free)
        rate.started(now)
        starts.push(now)
      }
      for (const at of starts) {
        assert.isAtMost(starts.filter((start) => start >= at && start < at + 1_000).length, perSecond)
      }
      const until = rate.countsUntil
      assert.strictEqual(until, starts.length === 0 ? null : starts.at(-1)! + 1_000)
      rate.forget(until ?? now)
      assert.isNull(rate.countsUntil)
    }))
  })
})
