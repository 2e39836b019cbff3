import { assert, layer } from "@effect/vitest"
import { Clock, Deferred, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Database } from "../../../../services/platform/database/Database.ts"
import { type Chunk, type JobKind, Jobs, type JobWorker, worker } from "../../../../services/platform/messaging/Jobs.ts"
import { ground } from "../../../support/TestAccounts.ts"

const steps: JobKind<{ readonly upTo: number }> = { kind: "test.steps" }

/** Notes each chunk in the chunk's own transaction; two numbers a chunk. */
const counting = Effect.map(Database, ({ sql }) =>
  worker(steps, ({ upTo }, cursor) => {
    const from = typeof cursor === "number" ? cursor : 0
    const chunk: Chunk = { done: 2, next: from + 2 < upTo ? { cursor: from + 2 } : null }
    return Effect.as(sql`insert into done_under_test select generate_series(${from + 1}::int, ${from + 2}::int)`, chunk)
  }))

const rowOf = Effect.fnUntraced(function* (id: string) {
  const { sql } = yield* Database
  const [row] = yield* sql<Record<string, unknown>>`select * from jobs where id = ${id}::uuid`
  return row!
})
const notes = Effect.gen(function* () {
  const { sql } = yield* Database
  return (yield* sql<{ n: number }>`select n from done_under_test order by n`).map(({ n }) => n)
})
const clear = Effect.gen(function* () {
  const { owner, sql } = yield* Database
  yield* owner`create table if not exists done_under_test (n integer)`
  yield* owner`grant all on done_under_test to public`
  yield* sql`delete from done_under_test`
  yield* sql`delete from jobs`
})

const fixture = Jobs.layer.pipe(
  Layer.provideMerge(ground),
  // Set before any loop starts: a clock that jumps wakes every loop for each of its turns.
  Layer.provideMerge(Layer.effectDiscard(TestClock.setTime(1_772_000_000_000))),
)

layer(Layer.fresh(fixture))("Jobs", (it) => {
  it.effect("a job is done chunk by chunk, each with its cursor, and is effective at its end", () =>
    Effect.gen(function* () {
      yield* clear
      const jobs = yield* Jobs
      const count = yield* counting
      const id = yield* jobs.add(steps, { upTo: 6 })
      for (const cursor of [2, 4]) {
        assert.isTrue(yield* jobs.work([count]))
        const { claim, done, state, ...row } = yield* rowOf(id)
        assert.deepStrictEqual([row["cursor"], Number(done), state, claim], [cursor, cursor, "pending", null])
      }
      yield* jobs.work([count])
      assert.strictEqual((yield* rowOf(id))["state"], "effective")
      assert.isFalse(yield* jobs.work([count]))
      assert.deepStrictEqual(yield* notes, [1, 2, 3, 4, 5, 6])
    }))

  it.effect("a job is deleted thirty days after its end, and never before", () =>
    Effect.gen(function* () {
      yield* clear
      const jobs = yield* Jobs
      const { sql } = yield* Database
      const count = yield* counting
      const [done, waiting] = [yield* jobs.add(steps, { upTo: 2 }), yield* jobs.add({ kind: "test.later" }, {})]
      yield* jobs.work([count])
      // Ages the rows instead of the clock: every loop would take a turn for each moment of a month.
      yield* sql`update jobs set not_before = not_before - interval '30 days'`
      assert.strictEqual(yield* jobs.prune, 0)
      // The prune takes more than one statement.
      yield* sql`insert into jobs (id, kind, args, created_at, not_before, state)
        select gen_random_uuid(), kind, args, created_at, not_before, state
        from jobs, generate_series(1, 1200) where id = ${done}::uuid`
      yield* TestClock.adjust(1)
      assert.strictEqual(yield* jobs.prune, 1_201)
      assert.deepStrictEqual(yield* sql`select id::text as id from jobs`, [{ id: waiting }])
    }))

  it.effect("a chunk whose lease ended before its turn is left to the process that claimed it", () =>
    Effect.gen(function* () {
      yield* clear
      const jobs = yield* Jobs
      const { sql } = yield* Database
      const count = yield* counting
      const first = yield* jobs.add(steps, { upTo: 2 })
      const second = yield* jobs.add(steps, { upTo: 2 })
      // The first job takes so long that another process has claimed the second.
      const slow: JobWorker = {
        kind: steps.kind,
        chunk: (args, cursor) =>
          Effect.andThen(
            sql`update jobs set claim = nextval('claims') where id = ${second}::uuid`,
            count.chunk(args, cursor),
          ),
      }
      yield* jobs.work([slow])
      assert.deepStrictEqual(yield* notes, [1, 2])
      assert.strictEqual((yield* rowOf(first))["state"], "effective")
      const { claim, done, state } = yield* rowOf(second)
      assert.deepStrictEqual([Number(done), state, claim === null], [0, "pending", false])
    }))

  it.effect("a job stopped within a chunk is released, and goes on at once after the last committed chunk", () =>
    Effect.gen(function* () {
      yield* clear
      const jobs = yield* Jobs
      const count = yield* counting
      const id = yield* jobs.add(steps, { upTo: 6 })
      const beside = yield* jobs.add(steps, { upTo: 2 })
      yield* jobs.work([count])
      const within = yield* Deferred.make<void>()
      const stopped: JobWorker = {
        kind: steps.kind,
        chunk: (args, cursor) =>
          count.chunk(args, cursor).pipe(
            Effect.andThen(Deferred.succeed(within, undefined)),
            Effect.andThen(Effect.never),
          ),
      }
      const fiber = yield* Effect.forkChild(jobs.work([stopped]))
      yield* Deferred.await(within)
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(yield* notes, [1, 1, 2, 2])
      const { attempts, claim, lease_until, state } = yield* rowOf(id)
      assert.deepStrictEqual([attempts, claim, lease_until, state], [0, null, null, "pending"])
      while (yield* jobs.work([count])) yield* Effect.void
      assert.deepStrictEqual(yield* notes, [1, 1, 2, 2, 3, 4, 5, 6])
      for (const job of [id, beside]) assert.strictEqual((yield* rowOf(job))["state"], "effective")
    }))

  it.effect("a job killed within a chunk goes on after the last committed one, once its lease is over", () =>
    Effect.gen(function* () {
      yield* clear
      const jobs = yield* Jobs
      const count = yield* counting
      const { sql } = yield* Database
      const id = yield* jobs.add(steps, { upTo: 6 })
      yield* jobs.work([count])
      const leaseUntil = new Date((yield* Clock.currentTimeMillis) + 20_000)
      yield* sql`
        update jobs set claim = nextval('claims'), attempts = 1, lease_until = ${leaseUntil} where id = ${id}::uuid`
      assert.isFalse(yield* jobs.work([count]))
      yield* TestClock.adjust(20_001)
      yield* jobs.free
      while (yield* jobs.work([count])) yield* Effect.void
      assert.deepStrictEqual(yield* notes, [1, 2, 3, 4, 5, 6])
      assert.strictEqual((yield* rowOf(id))["state"], "effective")
    }))

  it.effect("a failing job backs off alone, keeps its error, and leaves nothing of its chunk", () =>
    Effect.gen(function* () {
      yield* clear
      const jobs = yield* Jobs
      const count = yield* counting
      const { sql } = yield* Database
      const failing: JobWorker = {
        kind: "test.failing",
        chunk: () =>
          Effect.andThen(sql`insert into done_under_test values (99)`, sql`select 1 / 0`).pipe(
            Effect.as({ done: 1, next: null }),
          ),
      }
      const bad = yield* jobs.add({ kind: "test.failing" }, {})
      const good = yield* jobs.add(steps, { upTo: 2 })
      const start = yield* Clock.currentTimeMillis
      yield* jobs.work([failing, count])
      assert.strictEqual((yield* rowOf(good))["state"], "effective")
      const row = yield* rowOf(bad)
      assert.deepStrictEqual([row["state"], row["attempts"], row["claim"]], ["pending", 1, null])
      assert.strictEqual(row["last_error"], "22012 division by zero")
      assert.isAtLeast((row["not_before"] as Date).getTime(), start + 500)
      assert.deepStrictEqual(yield* notes, [1, 2])
      assert.isFalse(yield* jobs.work([failing, count]))
      yield* TestClock.adjust(600)
      yield* jobs.work([failing, count])
      assert.strictEqual((yield* rowOf(bad))["attempts"], 2)
    }))

  it.effect("a job with a defect delays no other job", () =>
    Effect.gen(function* () {
      yield* clear
      const jobs = yield* Jobs
      const count = yield* counting
      const broken: JobWorker = { kind: "test.broken", chunk: () => Effect.die(new Error("a bug")) }
      const bad = yield* jobs.add({ kind: "test.broken" }, {})
      const good = yield* jobs.add(steps, { upTo: 2 })
      yield* jobs.work([broken, count])
      assert.strictEqual((yield* rowOf(good))["state"], "effective")
      const row = yield* rowOf(bad)
      assert.deepStrictEqual([row["state"], row["claim"], row["last_error"]], ["pending", null, "a bug"])
    }))

  it.effect("a job of an unknown kind stays untouched, and two workers never do the same chunk", () =>
    Effect.gen(function* () {
      yield* clear
      const jobs = yield* Jobs
      const count = yield* counting
      const other = yield* jobs.add({ kind: "test.newer" }, { of: "a newer program" })
      const before = yield* rowOf(other)
      for (let i = 0; i < 20; i++) yield* jobs.add(steps, { upTo: 2 })
      const work = Effect.repeat(jobs.work([count]), { until: (more) => !more })
      yield* Effect.all([work, work, work, work], { concurrency: "unbounded" })
      assert.lengthOf(yield* notes, 40)
      assert.deepStrictEqual(yield* rowOf(other), before)
    }))
})
