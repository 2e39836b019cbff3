/** Gauges of queues: what they count, and what they show where the database does not answer. */
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, Metric } from "effect"
import { randomUUID } from "node:crypto"
import { type GaugedQueue, gaugedQueues } from "../../../services/operations/QueueGauges.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { readGauges, ScrapedGauges } from "../../../services/platform/observability/ScrapedGauges.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

const gauges = Effect.map(
  Metric.snapshot,
  (all) =>
    new Map(
      all.flatMap((metric) =>
        metric.type === "Gauge" && /_(queue|outbox)_/.test(metric.id)
          ? [[
            `${metric.id.replace("bailiwick_", "")} ${metric.attributes?.["queue"] ?? ""}`.trim(),
            metric.state.value,
          ]]
          : []
      ),
    ),
)

/** How old the reading of a queue is. */
const ageOf = (queue: GaugedQueue) =>
  Effect.map(Metric.snapshot, (all) => {
    const found = all.find(({ attributes, id }) =>
      id === "bailiwick_reading_age_seconds" && attributes?.["reading"] === queue
    )
    return found?.type === "Gauge" ? Number(found.state.value) : assert.fail(`no age of ${queue}`)
  })

const seconds = (n: number) => new Date(Date.now() - n * 1_000)

/** A webhook's queue state and so many deliveries in its queue. */
const queued = Effect.fnUntraced(
  function* (n: number, due: Date, options: { paused?: boolean; attempt?: number; announced?: boolean } = {}) {
    const { sql } = yield* Database
    const [id, state] = [randomUUID(), options.announced === true ? new Date(Date.now() + 20_000) : due]
    yield* sql`
      insert into webhook_lanes (webhook_id, account_id, paused, next_due_at)
      values (${id}::uuid, ${id}::uuid, ${options.paused ?? false}, ${state}::timestamptz)`
    yield* sql`
      insert into delivery_queue (delivery_id, webhook_id, account_id, event_id, cycle, attempt, due_at)
      select gen_random_uuid(), ${id}::uuid, ${id}::uuid, gen_random_uuid(), 1, ${options.attempt ?? 1}::int,
        ${due}::timestamptz
      from generate_series(1, ${n}::int)`
  },
)

const queues: ReadonlyArray<GaugedQueue> = ["deliveries", "outbox", "outbox_ordered", "mails", "slack", "timers"]

const isolated = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  effect.pipe(
    Effect.provideService(Metric.MetricRegistry, new Map()),
    Effect.provideService(ScrapedGauges, new Set()),
    Effect.scoped,
  )

layer(TestDatabase.layer, { excludeTestServices: true, timeout: "2 minutes" })("QueueGauges", (it) => {
  it.effect("count what waits, and the age of the oldest due delivery of a webhook that is not paused", () =>
    isolated(Effect.gen(function* () {
      const { owner } = yield* Database
      yield* gaugedQueues(queues)
      assert.lengthOf([...yield* gauges], 0)
      yield* readGauges
      const empty = yield* gauges
      assert.lengthOf([...empty], 16)
      assert.deepStrictEqual(new Set(empty.values()), new Set([0]))

      yield* queued(3, seconds(100), { announced: true })
      yield* queued(4, seconds(50), { attempt: 2 })
      yield* queued(5, seconds(5_000), { paused: true })
      yield* queued(6, seconds(-5_000))
      yield* owner`
        insert into timers (aggregate_id, kind, due_at, not_before, last_error)
        values ('gauges-1', 'test', now(), ${seconds(20)}::timestamptz, 'away'),
          ('gauges-2', 'test', now(), ${seconds(-20)}::timestamptz, null)`
      yield* owner`
        insert into outbox (id, stream, subject, payload, created_at, not_before)
        values (gen_random_uuid(), 'TEST', 'test', '{}', ${seconds(300)}::timestamptz, ${seconds(-60)}::timestamptz)`
      yield* readGauges
      const read = yield* gauges
      const near = (name: string, expected: number) =>
        assert.isTrue(Math.abs(read.get(name)! as number - expected) < 30, `${name}: ${read.get(name)}`)
      assert.strictEqual(read.get("queue_depth deliveries"), 18)
      assert.strictEqual(read.get("queue_failing deliveries"), 4)
      near("queue_oldest_due_seconds deliveries", 100)
      assert.strictEqual(read.get("queue_depth timers"), 2)
      assert.strictEqual(read.get("queue_failing timers"), 1)
      near("queue_oldest_due_seconds timers", 20)
      near("outbox_age_seconds", 300)
      assert.strictEqual(read.get("queue_depth mails"), 0)
    })))

  it.effect("keep, within a second, what the database does not answer, say its age, and ask once for all scrapes", () =>
    isolated(Effect.gen(function* () {
      const { owner, wide } = yield* Database
      yield* gaugedQueues(queues)
      yield* readGauges
      const before = yield* gauges
      assert.isBelow(yield* ageOf("deliveries"), 5)
      const waiting = wide<{ n: number }>`
        select count(*)::int as n from pg_locks where not granted and relation = 'delivery_queue'::regclass`
      yield* Effect.gen(function* () {
        yield* owner`lock table delivery_queue in access exclusive mode`
        const began = performance.now()
        const scrapes = yield* Effect.forkChild(Effect.all(Array.from({ length: 20 }, () => readGauges), {
          concurrency: "unbounded",
        }))
        const [most] = yield* waiting.pipe(
          Effect.repeat({ until: ([row]) => row!.n > 0 }),
        )
        assert.strictEqual(most!.n, 1)
        yield* Fiber.join(scrapes)
        assert.isBelow(performance.now() - began, 5_000)
        const read = yield* gauges
        assert.strictEqual(read.get("queue_depth deliveries"), before.get("queue_depth deliveries"))
        assert.isAtLeast(yield* ageOf("deliveries"), 0.4)
        assert.isBelow(yield* ageOf("slack"), yield* ageOf("deliveries"))
      }).pipe(owner.withTransaction)
      yield* queued(1, seconds(1))
      yield* readGauges.pipe(
        Effect.andThen(gauges),
        Effect.repeat({
          until: (read) => read.get("queue_depth deliveries") === Number(before.get("queue_depth deliveries")) + 1,
        }),
      )
    })))
})
