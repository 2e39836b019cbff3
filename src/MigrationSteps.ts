/**
 * A migration in steps, so that no statement holds the lock of another and a large table is never rewritten while others
 * wait: each statement is a transaction of its own, and commits with its row in `stepped_migrations`. A process that is
 * killed leaves the steps that committed, and the next run begins after them; of two processes at once, one runs a step
 * and the other waits for its row.
 *
 * Where a lock is not free within the pool's `lock_timeout` (2 s), the statement is given up, so that what waits behind
 * it goes on, and tried again (RetryOnLockTimeout). CREATE and DROP INDEX CONCURRENTLY run outside of transactions
 * without limits, since they block no write, on a connection of their own; an index that a killed run left invalid is
 * built anew.
 */
import { PgClient } from "@effect/sql-pg"
import { Clock, Effect, Option } from "effect"
import { Reactivity } from "effect/reactivity"
import { tryOnConnection } from "../services/platform/database/AdvisoryLocks.ts"
import { inTurn } from "../services/platform/database/RetryOnLockTimeout.ts"

export interface SteppedMigration {
  readonly id: number
  readonly name: string
  readonly statements: ReadonlyArray<string>
}

/** Whether a statement must run outside of a transaction. */
const isConcurrent = (statement: string) => /\bindex\s+concurrently\b/i.test(statement)

const isDone = (owner: PgClient.PgClient, { id }: SteppedMigration, step: number) =>
  Effect.map(
    owner`select from stepped_migrations where migration_id = ${id} and step = ${step}`,
    (rows) => rows.length > 0,
  )

/** Notes a step; none where another process has noted it. Waits for a process that is about to. */
const note = Effect.fnUntraced(function* (owner: PgClient.PgClient, { id }: SteppedMigration, step: number) {
  const now = new Date(yield* Clock.currentTimeMillis)
  const noted = yield* owner`
    insert into stepped_migrations (migration_id, step, done_at) values (${id}, ${step}, ${now})
    on conflict do nothing returning 1`
  return noted.length > 0
})

const inTransaction = (owner: PgClient.PgClient, migration: SteppedMigration, step: number) =>
  Effect.gen(function* () {
    if (yield* note(owner, migration, step)) yield* owner.unsafe(migration.statements[step]!)
  }).pipe(owner.withTransaction, inTurn)

/** The index that a statement makes. */
const madeIndex = (statement: string) =>
  /\bcreate\s+(?:unique\s+)?index\s+concurrently\s+if\s+not\s+exists\s+(\w+)/i.exec(statement)?.[1]

/** Runs an index's statement alone; false where another process has the turn. */
const concurrently = (owner: PgClient.PgClient, statement: string) =>
  Effect.gen(function* () {
    // The pool's own connections are given up after five minutes of silence, and an index may take longer.
    const { stream: _, ...config } = owner.config
    const alone = yield* PgClient.make({
      ...config,
      maxConnections: 1,
      startupParameters: { ...config.startupParameters, statement_timeout: "0", lock_timeout: "0" },
    })
    if (!(yield* tryOnConnection(alone, "indexes"))) return false
    const name = madeIndex(statement)
    const invalid = name === undefined ? [] : yield* alone`
      select from pg_index where indexrelid = to_regclass(${name}) and not indisvalid`
    if (name !== undefined && invalid.length > 0) yield* alone`drop index concurrently ${alone(name)}`
    yield* alone.unsafe(statement)
    return true
  }).pipe(Effect.provide(Reactivity.layer), Effect.scoped)

const runStep = Effect.fnUntraced(function* (owner: PgClient.PgClient, migration: SteppedMigration, step: number) {
  const statement = migration.statements[step]!
  if (!isConcurrent(statement)) return yield* inTransaction(owner, migration, step)
  while (!(yield* isDone(owner, migration, step))) {
    if (yield* concurrently(owner, statement)) yield* note(owner, migration, step)
    else yield* Effect.sleep("500 millis")
  }
})

/** Whether a migration was applied. */
export const isRecorded = (owner: PgClient.PgClient, id: number) =>
  Effect.map(
    inTurn(owner`select from effect_sql_migrations where migration_id = ${id}`),
    (rows) => rows.length > 0,
  )

/** Runs the first steps, as far as they are missing, and leaves the migration there: a run of it goes on after them. */
export const runFirstSteps = Effect.fn("runFirstSteps")(function* (
  owner: PgClient.PgClient,
  migration: SteppedMigration,
  count: number,
) {
  for (let step = 0; step < count; step++) yield* runStep(owner, migration, step)
})

/** Runs the steps that are missing, and records the migration; returns its id and name where this call recorded it. */
export const runSteps = Effect.fn("runSteps")(function* (owner: PgClient.PgClient, migration: SteppedMigration) {
  const { id, name, statements } = migration
  if (yield* isRecorded(owner, id)) return Option.none<readonly [number, string]>()
  yield* runFirstSteps(owner, migration, statements.length)
  const rows = yield* inTurn(owner`
    insert into effect_sql_migrations (migration_id, name) values (${id}, ${name}) on conflict do nothing returning 1`)
  return rows.length > 0 ? Option.some([id, name] as const) : Option.none()
})
