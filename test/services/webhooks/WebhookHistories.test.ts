/**
 * Random histories of accepts, settlements, retries, replays, pauses, deletions and compactions: after each step the
 * counts match the tables, exactly the deliveries that have not ended have a queue row, and the scan finds all due
 * ones.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { DeliveryId } from "../../../schemas/BrandedIds.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { Jobs } from "../../../services/platform/messaging/Jobs.ts"
import { CountCompaction } from "../../../services/webhooks/CountCompaction.ts"
import { Deliveries } from "../../../services/webhooks/Deliveries.ts"
import { Replays } from "../../../services/webhooks/Replays.ts"
import { releasedOf, type Task } from "../../../services/webhooks/Sender/Task.ts"
import { Settlement } from "../../../services/webhooks/Settlement.ts"
import { WebhookJobs } from "../../../services/webhooks/WebhookJobs.ts"
import { Webhooks } from "../../../services/webhooks/Webhooks.ts"
import {
  claimAll,
  event,
  failed,
  fixture,
  miscounted,
  now,
  resultOf,
  settle,
  stranded,
  take,
  webhook,
} from "./WebhookFixture.ts"

/** Short delays: a virtual hour means many turns of loops that run every 10 s. */
const schedule = { delays: Array.from({ length: 8 }, () => 60_000), jitter: 0.1 }

type Hook = Effect.Success<ReturnType<typeof webhook>>

const few = fc.integer({ min: 1, max: 6 })
const which = fc.nat(2)
const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant("accept" as const), hook: which, n: few, slots: fc.nat(6) }) },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constantFrom("delivered" as const, "failed" as const, "failed" as const, "released" as const),
      hook: which,
      n: few,
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("claim" as const), hook: which, n: few }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("later" as const), hook: which, n: few }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("expire" as const), hook: which, n: few }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant("exhaust" as const), hook: which, n: few }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("replay" as const), hook: which, n: few }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constantFrom("pause" as const, "resume" as const), hook: which, n: few }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("delete" as const), hook: which, n: few }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("fold" as const), hook: which, n: few }) },
)
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never

interface State {
  readonly hooks: ReadonlyArray<Hook>
  tasks: Array<Task>
}

const settled = Effect.fnUntraced(function* (state: State, { do: what, n }: Step) {
  const at = yield* now
  const some = state.tasks.splice(0, n)
  yield* settle(
    some.map((task) =>
      what === "released" ? releasedOf(task) : what === "delivered" ? resultOf(task, at) : failed(task, at)
    ),
  )
})

const ids = Effect.fnUntraced(function* (from: string, where: string) {
  const { sql } = yield* Database
  return (yield* sql.unsafe<{ id: string }>(`select ${from} where ${where}`)).map(({ id }) => id)
})

const run = Effect.fnUntraced(function* (state: State, one: Step) {
  const { sql } = yield* Database
  const { remove, update } = yield* Webhooks
  const { accountId, id } = state.hooks[one.hook]!
  switch (one.do) {
    case "accept": {
      const events = Array.from({ length: one.n }, () => event(accountId))
      return void state.tasks.push(...(yield* take(events, one.slots)).tasks)
    }
    case "claim": {
      yield* TestClock.adjust("2 minutes")
      const due = yield* (yield* Deliveries).scan
      return void state.tasks.push(...(yield* claimAll(due.flatMap(({ deliveryIds }) => deliveryIds.slice(0, one.n)))))
    }
    case "later":
      return yield* TestClock.adjust(`${one.n * 20} seconds`)
    case "expire":
      yield* TestClock.adjust("31 seconds")
      return void (yield* (yield* Settlement).free)
    case "exhaust":
      return yield* sql`update delivery_queue set attempt = 8 where claim is null and attempt > 1
        and webhook_id = ${id}::uuid`
    case "replay": {
      const ended = yield* ids("id from deliveries", `webhook_id = '${id}' and status <> 'cancelled'`)
      return void (yield* (yield* Replays).again(id, ended.slice(0, one.n).map((id) => DeliveryId.make(id))).pipe(
        sql.withTransaction,
      ))
    }
    case "pause":
    case "resume":
      return yield* Effect.ignore(update(accountId, id, { isActive: one.do === "resume" }))
    case "delete":
      if ((yield* Effect.exit(remove(accountId, id)))._tag === "Failure") return
      yield* TestClock.adjust("20 seconds")
      assert.isTrue(yield* (yield* Jobs).work((yield* WebhookJobs).workers))
      assert.deepStrictEqual(yield* sql`select last_error from jobs where last_error is not null`, [])
      return
    case "fold":
      return void (yield* (yield* CountCompaction).compact)
    default:
      return yield* settled(state, one)
  }
})

/** Deliveries whose queue row, status or next retry do not fit each other. */
const misqueued = Effect.flatMap(
  Database,
  ({ sql }) =>
    sql`select d.id, d.status, q.attempt from deliveries d full join delivery_queue q on q.delivery_id = d.id
    where (q.delivery_id is null) is distinct from (d.status in ('delivered', 'dead_letter', 'cancelled'))
      or q.delivery_id is not null and d.status <> case when q.attempt = 1 then 'pending' else 'retrying' end
      or (d.next_retry_at is null) is distinct from (d.status <> 'retrying')`,
)

layer(Layer.fresh(fixture({ schedule })))("Histories", (it) => {
  it.effect(
    "50 random histories keep counts, queue rows and due deliveries consistent at each step",
    () =>
      Effect.gen(function* () {
        const histories = fc.sample(fc.array(step, { minLength: 10, maxLength: 20, size: "max" }), {
          numRuns: 50,
          seed: 11,
        })
        const ends = new Set<string>()
        const { sql } = yield* Database
        for (const history of histories) {
          const state: State = { hooks: [yield* webhook(), yield* webhook(), yield* webhook()], tasks: [] }
          for (const [i, one] of history.entries()) {
            yield* run(state, one)
            const where = `after step ${i} of ${JSON.stringify(history)}`
            assert.deepStrictEqual(yield* miscounted, [], where)
            assert.deepStrictEqual(yield* misqueued, [], where)
            assert.deepStrictEqual(yield* stranded, [], where)
          }
          for (const { status } of yield* sql<{ status: string }>`select distinct status from deliveries`) {
            ends.add(status)
          }
          yield* TestClock.adjust("31 seconds")
          yield* (yield* Settlement).free
          // Each history begins with empty tables.
          const tables = ["deliveries", "delivery_queue", "delivery_counts", "dead_letters", "jobs", "webhook_lanes"]
          for (const table of tables) yield* sql`delete from ${sql(table)}`
        }
        assert.sameMembers([...ends], ["pending", "retrying", "delivered", "dead_letter", "cancelled"])
      }),
    120_000,
  )
})
