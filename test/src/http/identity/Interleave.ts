/** Requests that meet in the database: one waits for a lock of another. */
import { Deferred, Effect, Fiber, Schedule } from "effect"
import { Database } from "../../../../services/platform/database/Database.ts"

/** Waits until this many statements wait for a lock of this database. */
export const waits = Effect.fnUntraced(function* (many: number) {
  const { sql } = yield* Database
  yield* sql`
    select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`.pipe(
    Effect.filterOrFail((rows) => rows.length >= many),
    Effect.retry({ schedule: Schedule.spaced("5 millis"), times: 6_000 }),
  )
})

/** Runs `first` in a transaction that ends once `many` wait because of `meanwhile`. Returns both results. */
export const during = Effect.fnUntraced(function* <A, E, R, B, F, S>(
  first: Effect.Effect<A, E, R>,
  meanwhile: Effect.Effect<B, F, S>,
  many = 1,
) {
  const { sql } = yield* Database
  const [ready, end] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
  const holder = yield* first.pipe(
    Effect.tap(() => Deferred.succeed(ready, undefined)),
    Effect.tap(() => Deferred.await(end)),
    sql.withTransaction,
    Effect.forkChild,
  )
  yield* Deferred.await(ready)
  const other = yield* Effect.forkChild(meanwhile)
  yield* waits(many)
  yield* Deferred.succeed(end, undefined)
  return [yield* Fiber.join(holder), yield* Fiber.join(other)] as const
})
