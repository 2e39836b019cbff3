import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { Database } from "../../../../services/platform/database/Database.ts"
import {
  backoffMillis,
  claimDue,
  claimed,
  freeExpired,
  release,
  settleFailed,
} from "../../../../services/platform/database/Leases.ts"
import { TestDatabase } from "../../../support/TestDatabase.ts"

const jobs = { table: "jobs_under_test", key: "id", keyType: "bigint" } as const

interface Job {
  readonly id: bigint
  readonly attempts: number
  readonly claim: bigint | null
  readonly last_error: string | null
  readonly not_before: Date
}

layer(TestDatabase.layer, { excludeTestServices: true })("Leases", (it) => {
  it.effect("a row goes to one worker under its fence, backs off alone, and is freed when its lease ends", () =>
    Effect.gen(function* () {
      const { sql, owner } = yield* Database
      yield* owner`create table jobs_under_test (
        id bigint primary key, attempts integer not null default 0, not_before timestamptz not null,
        last_error text, claim bigint, lease_until timestamptz)`
      yield* owner`grant all on jobs_under_test to public`
      yield* TestClock.setTime(1_000_000)
      yield* sql`insert into jobs_under_test (id, not_before)
        select i, ${new Date(1_000_000)} from generate_series(1, 100) i`
      const claim = claimDue<Job>(sql, jobs, { leaseMillis: 10_000, limit: 30 })
      const batches = yield* Effect.all([claim, claim, claim, claim, claim], { concurrency: 5 })
      assert.strictEqual(new Set(batches.flat().map((row) => row.id)).size, 100)
      assert.strictEqual(batches.flat().length, 100)
      for (const batch of batches) assert.isAtMost(new Set(batch.map((row) => row.claim)).size, 1)
      assert.deepStrictEqual(yield* claim, [])

      const [mine, theirs] = [batches[0]!, batches[1]!]
      const token = mine[0]!.claim
      // The second row is claimed by another worker: settling it under this claim changes nothing.
      yield* settleFailed(sql, jobs, token, [
        { key: mine[0]!.id, afterMillis: 5_000, error: "it\0 broke" },
        { key: theirs[0]!.id, afterMillis: 5_000, error: "not mine" },
      ])
      const read = (id: bigint) => sql<Job>`select * from jobs_under_test where id = ${id}`
      const [failed] = yield* read(mine[0]!.id)
      assert.deepStrictEqual([failed?.claim, failed?.attempts, failed?.last_error], [null, 1, "it broke"])
      assert.deepStrictEqual(failed?.not_before, new Date(1_005_000))
      const [held] = yield* read(theirs[0]!.id)
      assert.deepStrictEqual([held?.claim, held?.last_error], [theirs[0]!.claim, null])

      assert.strictEqual(yield* freeExpired(sql, jobs), 0)
      assert.deepStrictEqual(yield* claim, [])
      yield* TestClock.adjust(5_000)
      assert.deepStrictEqual((yield* claim).map((row) => [row.id, row.attempts]), [[mine[0]!.id, 2]])
      yield* TestClock.adjust(5_001)
      assert.strictEqual(yield* freeExpired(sql, jobs), 99)
      const [freed] = yield* claimDue<Job>(sql, jobs, { leaseMillis: 1, limit: 1, also: sql`and t.id = 77` })
      assert.deepStrictEqual([freed?.id, freed?.attempts, freed?.last_error], [77n, 2, "interrupted"])
      // A late settlement finds another claim.
      yield* settleFailed(sql, jobs, token, [{ key: 77n, afterMillis: 0, error: "late" }])
      const [late] = yield* read(77n)
      assert.strictEqual(late?.last_error, "interrupted")
    }).pipe(Effect.provide(TestClock.layer())))

  it.effect("a stop releases claimed rows at any moment, as if they had not been claimed", () =>
    Effect.gen(function* () {
      const { sql, owner } = yield* Database
      yield* owner`create table stopped_under_test (
        id text primary key, attempts integer not null default 0, not_before timestamptz not null,
        last_error text, claim bigint, lease_until timestamptz)`
      yield* owner`grant all on stopped_under_test to public`
      const table = { table: "stopped_under_test", key: "id", keyType: "text" } as const
      yield* sql`insert into stopped_under_test (id, attempts, not_before)
        select i::text, 2, to_timestamp(i) from generate_series(1, 3) i`
      const before = yield* sql`select * from stopped_under_test order by id`
      const rows = sql`select * from stopped_under_test order by id`
      const claim = (also = sql``) => claimDue<Job>(sql, table, { leaseMillis: 10_000, limit: 3, also })
      const giveBack = ([first]: ReadonlyArray<{ readonly claim: bigint }>) => release(sql, table, first!.claim)

      // Stopped during the claiming statement.
      const slow = claim(sql`and pg_sleep(0.3) is not null`)
      const claiming = yield* Effect.forkChild(claimed({ claim: slow, work: () => Effect.never, giveBack }))
      const busy = sql<{ n: number }>`
        select count(*)::int as n from pg_stat_activity
        where datname = current_database() and state = 'active' and pid <> pg_backend_pid() and query like '%pg_sleep%'`
      yield* Effect.repeat(busy, { until: ([row]) => row!.n > 0 })
      yield* Fiber.interrupt(claiming)
      assert.deepStrictEqual(yield* rows, before)

      // Stopped during the work: rows that are settled stay settled.
      const within = yield* Deferred.make<void>()
      const settleFirst = ([first]: ReadonlyArray<Job & { readonly claim: bigint }>) =>
        settleFailed(sql, table, first!.claim, [{ key: first!.id, afterMillis: 60_000, error: "later" }]).pipe(
          Effect.andThen(Deferred.succeed(within, undefined)),
          Effect.andThen(Effect.never),
        )
      const working = yield* Effect.forkChild(claimed({ claim: claim(), work: settleFirst, giveBack }))
      yield* Deferred.await(within)
      yield* Fiber.interrupt(working)
      const [first, ...others] = yield* rows
      assert.deepInclude(first, { id: "1", attempts: 3, claim: null, last_error: "later" })
      assert.deepStrictEqual(others, before.slice(1))

      // Work that has begun may run on for its patience, and no longer.
      const begun = yield* Deferred.make<void>()
      const ends = yield* Deferred.make<void>()
      const patient = (patience: "1 minute" | "1 millis", work: Effect.Effect<void>) =>
        Effect.forkChild(claimed({
          claim: claim(),
          giveBack,
          patience,
          work: () => Effect.andThen(Deferred.succeed(begun, undefined), work),
        }))
      const patiently = yield* patient("1 minute", Deferred.await(ends))
      yield* Deferred.await(begun)
      const stopping = yield* Effect.forkChild(Fiber.interrupt(patiently), { startImmediately: true })
      yield* Deferred.succeed(ends, undefined)
      yield* Fiber.join(stopping)
      assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(patiently)))
      const hasty = yield* patient("1 millis", Effect.never)
      yield* Fiber.interrupt(hasty)
      assert.deepStrictEqual((yield* rows).slice(1), before.slice(1))
    }))

  it.effect("the wait doubles up to its bound", () =>
    Effect.sync(() => {
      for (const [attempts, least] of [[1, 500], [2, 1_000], [5, 8_000], [50, 60_000]] as const) {
        const millis = backoffMillis(attempts)
        assert.isAtLeast(millis, least)
        assert.isAtMost(millis, least * 1.1)
      }
    }))
})
