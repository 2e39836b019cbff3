/**
 * The one vocabulary of everything that waits and is worked off by several processes: columns
 * `attempts, not_before, last_error, claim, lease_until`, and these statements over them.
 *
 * - `claim is null` is the only meaning of "not in flight". A claim is a number of the sequence `claims`, one for all rows
 *   of one statement.
 * - Whoever works a row names the claim when it settles; a settlement that finds another claim, or none, changes nothing.
 * - A lease that ended is freed by anyone. The worker must not begin what it may not finish before `lease_until`.
 * - A row that fails backs off alone, with its reason, and never holds up another.
 * - A stop leaves no claim behind (`claimed`): what a stop cuts off is released, and due again at once.
 *
 * `key` is a single unique column. The caller's table needs two partial indexes: `(not_before, key) where claim is null`
 * (and whatever `also` says) and `(lease_until) where claim is not null`, so that no scan sees more than what is due.
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

/** How long a row that failed `attempts` times waits: 0.5 s doubled, up to `maxMillis`, plus up to a tenth. */
export const backoffMillis = (attempts: number, maxMillis = 60_000): number =>
  Math.min(maxMillis, 250 * 2 ** Math.min(attempts, 24)) * (1 + Math.random() / 10)

/**
 * Claims at most `limit` due rows for `leaseMillis`, oldest first, and gives them whole; `attempts` counts this one.
 * `also` narrows what is due, over the alias `t`.
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
      -- By key, one by one: a plan for any limit supposes that it leaves a tenth of all, and would read the table for it.
      update ${sql(table)} c
      set claim = own.claim, lease_until = ${new Date(now + options.leaseMillis)}, attempts = c.attempts + 1
      from unnest(array(select ${sql(key)} from due)) d(key), own where c.${sql(key)} = d.key
      returning c.*`)

/**
 * SQL of one row for each that is due, waits or is worked off, at most `most` of either kind: by the two indexes of the
 * table, since no index has both and reading the table instead reads all that was ever worked off. `also` is what tells
 * such rows from the others, over the alias `t`.
 */
export const unfinished = (sql: PgClient.PgClient, { table }: LeasedTable, also: Statement.Fragment, most: number) =>
  sql`(select 1 as one from ${sql(table)} t where t.claim is null and ${also} limit ${most})
    union all (select 1 from ${sql(table)} t where t.claim is not null and ${also} limit ${most})`

/**
 * Releases what a stop cut off under this claim, or of `keys` where they are given: due again at once, as if it had not
 * been claimed. `also` narrows it, over the alias `t`.
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

/** Lets `work` come to its end, for `patience` at most, where it is interrupted; then cuts it off. */
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
 * Works off what `claim` took. The claim is not interrupted: a statement that is cut off may have taken its rows all the
 * same. `work` is, once `patience` is over (at once unless given); then `giveBack` releases what it has not settled, or
 * whatever was taken where `work` had not begun. The pools' statement timeouts bound the claim, and 2 s the release.
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
            Effect.catchCause((cause) => Effect.logWarning("a claim was not given back: its lease ends", cause)),
          ),
      ))
  )
}

/** Gives rows back that failed: each is due again after its own delay and keeps its reason. Fenced by the claim. */
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

/** Frees rows whose lease ended without an outcome; they are due at once. Gives how many. */
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
