/** Timers by virtual time: the worker alone moves what nobody touches. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Cookies } from "../../../services/accounts/Cookies.ts"
import { Database } from "../../../services/platform/Database.ts"
import { Timers as TimerRows } from "../../../services/platform/Timers.ts"
import { Transfers } from "../../../services/transfers/Transfers.ts"
import { Timers } from "../../../src/workers/Timers.ts"
import {
  accept,
  config,
  day,
  domain,
  domainRow,
  footing,
  offer,
  person,
  timed,
} from "../../services/transfers/TransferWorld.ts"

const status = Effect.fnUntraced(function* (id: string) {
  const { sql } = yield* Database
  const [row] = yield* sql<{ status: string }>`select status from transfers where id = ${id}::uuid`
  return row!.status
})

/** Waits for what the worker's statements bring about: real time goes by, and the virtual clock by a second a look. */
const comes = (id: string, expected: string) =>
  Effect.repeat(
    Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 5))).pipe(
      Effect.andThen(TestClock.adjust("1 second")),
      Effect.andThen(status(id)),
    ),
    { until: (found) => found === expected, times: 400 },
  )

layer(Layer.provide(footing, Cookies.layer([])), { excludeTestServices: true, timeout: "60 seconds" })(
  "timers",
  (it) => {
    it.effect("an offer expires, an accepted transfer completes, at their moment and not before", () =>
      Effect.gen(function* () {
        const [alice, bob] = [yield* person({ plan: "pro" }), yield* person()]
        const [first, second] = [yield* domain(alice), yield* domain(alice)]
        const accepted = yield* offer(alice.id, first, bob.email)
        yield* accept(bob.id, accepted.id)
        const pending = yield* offer(alice.id, second, bob.email)
        yield* Effect.scoped(Effect.gen(function* () {
          yield* Layer.build(Timers.layer)
          yield* TestClock.adjust(2_000)
          assert.strictEqual(yield* status(accepted.id), "accepted")
        }))
        // The worker was away, and is back late: it does at once what is due, and only that.
        yield* TestClock.adjust(day)
        yield* Effect.scoped(Effect.gen(function* () {
          yield* Layer.build(Timers.layer)
          yield* comes(accepted.id, "completed")
        }))
        assert.strictEqual(yield* status(pending.id), "pending")
        assert.strictEqual((yield* domainRow(first)).account_id, bob.id)
        yield* TestClock.adjust(7 * day)
        yield* Effect.scoped(Effect.gen(function* () {
          yield* Layer.build(Timers.layer)
          yield* comes(pending.id, "expired")
        }))
        const { sql } = yield* Database
        assert.strictEqual((yield* sql`select from timers`).length, 0)
      }).pipe(Effect.provide(Transfers.layer(config)), timed))

    it.effect("a claim that its worker left is free again, and a rewritten timer is nobody's", () =>
      Effect.gen(function* () {
        const timers = yield* TimerRows
        const kinds = ["test.kind"]
        const at = yield* Effect.clockWith((clock) => clock.currentTimeMillis)
        yield* timers.set("x", [{ kind: "test.kind", dueAt: at + 1_000 }])
        assert.deepStrictEqual(yield* timers.claim(kinds, 10), [])
        assert.strictEqual(yield* timers.untilNext(kinds, 400), 400)
        assert.strictEqual(yield* timers.untilNext(kinds, 5_000), 1_000)
        yield* TestClock.adjust(1_000)
        const [claimed] = yield* timers.claim(kinds, 10)
        assert.strictEqual(claimed?.aggregate_id, "x")
        assert.deepStrictEqual(yield* timers.claim(kinds, 10), [])
        yield* TestClock.adjust(31_000)
        yield* timers.free
        const [again] = yield* timers.claim(kinds, 10)
        yield* timers.set("x", [{ kind: "test.kind", dueAt: at + day }])
        // The old claims settle nothing any more.
        yield* timers.retry([claimed!, again!], "late")
        assert.strictEqual(yield* timers.untilNext(kinds, 2 * day), day - 32_000)
        yield* timers.set("x", [])
        assert.strictEqual(yield* timers.untilNext(kinds, 77), 77)
      }).pipe(timed))
  },
)
