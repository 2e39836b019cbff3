/**
 * Claims and leases of rows that several processes work off: the columns
 * `attempts, not_before, last_error, claim, lease_until`, and these statements over them.
 *
 * - `claim is null` is the only meaning of "not in flight". A claim is a number of the sequence `claims`, one for all
 *   rows of one statement.
 * - A settlement names the claim; where the row has another claim, or none, the settlement changes nothing.
 * - Any process frees a lease that ended. A worker must not begin what it may not finish before `lease_until`.
 * - A row that fails backs off alone, with its reason, and never holds up another row.
 * - A stop leaves no claim behind (`claimed`): rows whose work is cut off are released, and due again at once.
 *
 * `key` is a single unique column. The caller's table needs two partial indexes: `(not_before, key) where claim is
 * null` (and whatever `also` says) and `(lease_until) where claim is not null`, so that no scan sees more than what is
 * due.
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, type Duration, Effect, Fiber } from "effect"
import type { SqlError, Statement } from "effect/sql"

export interface LeasedTable {
  readonly table: string
  /** The unique column and its type. */
  readonly key: string
  readonly keyType: "uuid" | "text" | "bigint"
}

/** The delay of a row that failed `attempts` times: 0.5 s doubled, up to `maxMillis`, plus up to a tenth. */
export const backoffMillis = (attempts: number, maxMillis = 60_000): number =>
  Math.min(maxMillis, 250 * 2 ** Math.min(attempts, 24)) * (1 + Math.random() / 10)

/**
 * Claims at most `limit` due rows for `leaseMillis`, oldest first, and returns all their columns; `attempts` includes
 * this attempt. `also` narrows the due rows, over the alias `t`.
 */
export const claimDue = <Row extends object>(sql: PgClient.PgClient, { table, key }: LeasedTable, options: {
  readonly leaseMillis: number
  readonly limit: number
  readonly also?: Statement.Fragment
}): Effect.Effect<ReadonlyArray<Row & { readonly claim: bigint }>, SqlError.SqlError> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) =>
    sql<Row & { readonly claim: bigint }>`
      with due as materialized (
        select t.${sql(key)} from ${sql(table)} t
        where t.claim is null and t.not_before <= ${new Date(now)} ${options.also ?? sql``}
        order by t.not_before, t.${sql(key)} limit ${options.limit} for update skip locked
      ), own as materialized (
        select nextval('claims') as claim where exists (select from due)
      )
      -- Rows by key from an array: for a limit of unknown size the planner assumes a tenth of all rows, and would
      -- read the whole table.
      update ${sql(table)} c
      set claim = own.claim, lease_until = ${new Date(now + options.leaseMillis)}, attempts = c.attempts + 1
      from unnest(array(select ${sql(key)} from due)) d(key), own where c.${sql(key)} = d.key
      returning c.*`)

/**
 * SQL of one row for each unfinished row, at most `most` unclaimed and `most` claimed ones: by the table's two indexes,
 * since no index has both, and a scan of the table would read all finished rows. `also` tells unfinished rows from the
 * others, over the alias `t`.
 */
export const unfinished = (sql: PgClient.PgClient, { table }: LeasedTable, also: Statement.Fragment, most: number) =>
  sql`(select 1 as one from ${sql(table)} t where t.claim is null and ${also} limit ${most})
    union all (select 1 from ${sql(table)} t where t.claim is not null and ${also} limit ${most})`

/**
 * Releases the rows of this claim whose work a stop cut off, or those of `keys`: due again at once, as if never
 * claimed. `also` narrows the rows, over the alias `t`.
 */
export const release = (
  sql: PgClient.PgClient,
  { table, key, keyType }: LeasedTable,
  claim: bigint,
  options: { readonly keys?: ReadonlyArray<string | bigint>; readonly also?: Statement.Fragment } = {},
): Effect.Effect<void, SqlError.SqlError> =>
  Effect.asVoid(sql`
    update ${sql(table)} t set claim = null, lease_until = null, attempts = greatest(0, t.attempts - 1)
    where t.claim = ${claim} ${options.also ?? sql``} ${
    options.keys === undefined
      ? sql``
      : sql`and t.${sql(key)} = any(${options.keys.map(String)}::${sql.literal(keyType)}[])`
  }`)

/** How long work that leaves the process (a POST, a publication) may go on once the process stops. */
export const stopTime: Duration.Input = "4 seconds"
const giveBackTime: Duration.Input = "2 seconds"

/** On an interruption gives `work` up to `patience` to finish, and then cuts it off. */
export const soonDone = <A, E, R>(work: Effect.Effect<A, E, R>, patience: Duration.Input): Effect.Effect<A, E, R> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(
      Effect.forkChild(work, { startImmediately: true }),
      (fiber) =>
        Effect.onInterrupt(restore(Fiber.join(fiber)), () =>
          Fiber.await(fiber).pipe(
            Effect.interruptible,
            Effect.timeoutOption(patience),
            Effect.andThen(Fiber.interrupt(fiber)),
          )),
    )
  )

/**
 * Works off the rows that `claim` took. The claim is never interrupted: a statement that is cut off may have claimed
 * its rows all the same. `work` is interrupted, once `patience` is over (by default at once); then `giveBack` releases
 * the rows that it has not settled, or all rows where `work` had not begun. The pools' statement timeouts bound the
 * claim, and 2 s the release.
 */
export const claimed = <A, E, R, B, E2, R2, E3, R3>(options: {
  readonly claim: Effect.Effect<A, E, R>
  readonly work: (taken: A) => Effect.Effect<B, E2, R2>
  readonly giveBack: (taken: A) => Effect.Effect<unknown, E3, R3>
  readonly patience?: Duration.Input
}): Effect.Effect<B, E | E2, R | R2 | R3> => {
  const { claim, giveBack, patience, work } = options
  return Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(claim, (taken) =>
      Effect.onInterrupt(
        restore(Effect.suspend(() => patience === undefined ? work(taken) : soonDone(work(taken), patience))),
        () =>
          giveBack(taken).pipe(
            Effect.interruptible,
            Effect.timeout(giveBackTime),
            Effect.catchCause((cause) => Effect.logWarning("a claim was not released: it ends with its lease", cause)),
          ),
      ))
  )
}

/** Releases failed rows: each is due again after its own delay and keeps its error. Fenced by the claim. */
export const settleFailed = (
  sql: PgClient.PgClient,
  { table, key, keyType }: LeasedTable,
  claim: bigint,
  failures: ReadonlyArray<{ readonly key: string | bigint; readonly afterMillis: number; readonly error: string }>,
): Effect.Effect<void, SqlError.SqlError> =>
  failures.length === 0 ? Effect.void : Effect.flatMap(Clock.currentTimeMillis, (now) =>
    Effect.asVoid(sql`
      update ${sql(table)} t
      set claim = null, lease_until = null, last_error = left(f.error, 500),
        not_before = ${new Date(now)}::timestamptz + f.after * interval '1 millisecond'
      from unnest(${failures.map((f) => String(f.key))}::text[], ${
      failures.map((f) => Math.round(f.afterMillis))
    }::int[], ${failures.map((f) => f.error.replaceAll("\0", ""))}::text[]) f(key, after, error)
      where t.${sql(key)} = f.key::${sql.literal(keyType)} and t.claim = ${claim}`))

/** Frees rows whose lease ended without an outcome; they are due at once. Returns how many. */
export const freeExpired = (
  sql: PgClient.PgClient,
  { table, key }: LeasedTable,
  limit = 1_000,
): Effect.Effect<number, SqlError.SqlError> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) =>
    Effect.map(
      sql`
      with over as materialized (
        select t.${sql(key)} from ${sql(table)} t
        where t.claim is not null and t.lease_until < ${new Date(now)}
        order by t.lease_until limit ${limit} for update skip locked
      )
      update ${sql(table)} t
      set claim = null, lease_until = null, not_before = ${new Date(now)}, last_error = 'interrupted'
      from unnest(array(select ${sql(key)} from over)) d(key) where t.${sql(key)} = d.key
      returning 1`,
      (rows) => rows.length,
    ))
