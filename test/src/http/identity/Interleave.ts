/** Requests that meet in the database: one waits for a lock of another. */
import { Context, Deferred, Effect, Fiber, Schedule } from "effect"
import { Database } from "../../../../services/platform/database/Database.ts"

/**
 * The process of PostgreSQL whose locks are waited for, directly or behind another one; null for any. A worker of the
 * same program that waits for another one for a moment is not to be taken for the statement of the test.
 */
class Holder extends Context.Reference<number | null>("bailiwick/test/http/identity/Holder", {
  defaultValue: () => null,
}) {}

/** Waits until this many statements wait for a lock of this database; within `during` only those behind its `first`. */
export const waits = Effect.fnUntraced(function* (many: number) {
  const { sql } = yield* Database
  const holder = yield* Holder
  yield* sql`
    with recursive waiting as materialized (
      select pid, pg_blocking_pids(pid) as behind from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'
    ), blocked as (
      select pid from waiting where ${holder}::int is null or ${holder}::int = any(behind)
      union select w.pid from waiting w join blocked b on b.pid = any(w.behind)
    )
    select from blocked`.pipe(
    Effect.filterOrFail((rows) => rows.length >= many),
    Effect.retry({ schedule: Schedule.spaced("5 millis"), times: 6_000 }),
  )
})

/** Two transactions of which one waits for the other until the scope closes, as two workers do for a moment. */
export const strangers = Effect.gen(function* () {
  const { sql } = yield* Database
  const [held, end] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
  const lock = sql`select pg_advisory_xact_lock(hashtext('strangers'))`
  yield* lock.pipe(
    Effect.andThen(Deferred.succeed(held, undefined)),
    Effect.andThen(Deferred.await(end)),
    sql.withTransaction,
    Effect.forkScoped,
  )
  yield* Deferred.await(held)
  yield* Effect.forkScoped(sql.withTransaction(lock))
  yield* Effect.addFinalizer(() => Deferred.succeed(end, undefined))
  yield* waits(1)
})

/** Runs `first` in a transaction that ends once `many` wait because of `meanwhile`. Returns both results. */
export const during = Effect.fnUntraced(function* <A, E, R, B, F, S>(
  first: Effect.Effect<A, E, R>,
  meanwhile: Effect.Effect<B, F, S>,
  many = 1,
) {
  const { sql } = yield* Database
  const [ready, end] = [yield* Deferred.make<number>(), yield* Deferred.make<void>()]
  const holder = yield* Effect.gen(function* () {
    const [own] = yield* sql<{ pid: number }>`select pg_backend_pid() as pid`
    const result = yield* first
    yield* Deferred.succeed(ready, own!.pid)
    yield* Deferred.await(end)
    return result
  }).pipe(sql.withTransaction, Effect.forkChild)
  const behind = Effect.provideService(Holder, yield* Deferred.await(ready))
  const other = yield* Effect.forkChild(behind(meanwhile))
  yield* behind(waits(many))
  yield* Deferred.succeed(end, undefined)
  return [yield* Fiber.join(holder), yield* Fiber.join(other)] as const
})
