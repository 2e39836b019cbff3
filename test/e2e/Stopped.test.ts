/** A clean stop under load: claimed work is settled or released, and the process ends with 0 in time. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { stopMillis, stops } from "../long/support/Stops.ts"
import { streaming } from "../services/event-streams/StreamFixture.ts"

const rounds = 4

describe("a program that is stopped under load", () => {
  it.live(
    "exits with 0 in time, leaves no lease in any table, and records nothing as interrupted",
    () =>
      Effect.gen(function* () {
        const { leasedTables, stop } = yield* stops
        const tables = (yield* leasedTables).map(({ table }) => table)
        assert.includeMembers(tables, ["delivery_queue", "jobs", "mails", "outbox", "outbox_lanes", "timers"])
        const left = yield* Effect.forEach(Array.from({ length: rounds }, (_, round) => round), stop)
        assert.deepStrictEqual(left.map(({ held }) => held), left.map(() => ({})))
        assert.deepStrictEqual(left.map(({ interrupted }) => interrupted), left.map(() => 0))
        assert.deepStrictEqual(left.map(({ code }) => code), left.map(() => 0))
        for (const { output, tookMillis } of left) assert.isBelow(tookMillis, stopMillis, output)
      }).pipe(Effect.scoped, Effect.provide(streaming())),
    300_000,
  )
})
