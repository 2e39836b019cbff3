/**
 * Backfills: changes of all rows that a table has, too many for a migration (docs/upgrading.md). A backfill walks its
 * table in the order of a key. Each bite is one transaction that locks the next rows, changes those that need it, and
 * writes down how far it has come: killed anywhere, no row is left out or changed twice.
 *
 * Any number of processes may take bites; the row of `backfills` is locked during a bite, and names the time of the next
 * one, so the rate holds for all of them together. A bite that takes long halves the rate, a quick one raises it, between
 * the floor and the ceiling of the pace.
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect, Metric } from "effect"
import { SqlError } from "effect/sql"
import { faultPoint } from "../Failpoints.ts"
import { reasonOf } from "./SqlErrors.ts"

export interface Backfill {
  /** Its progress is kept under this name, which no other backfill ever has. */
  readonly name: string
  readonly table: string
  /** The column by which the table is walked: unique, never null, never changed. */
  readonly key: string
  /** SQL: the condition of the rows that still need it. */
  readonly left: string
  /**
   * SQL: an UPDATE, INSERT or DELETE without RETURNING, for the rows whose keys are in `bite (key)`. It reads these rows
   * as they are once they are locked.
   */
  readonly fill: string
}

/** Rows a second that are changed. */
export interface Pace {
  /**
   * No bite is made smaller than a quarter of a second of these, so a backfill ends. Where the database needs longer
   * for such a bite, it changes fewer a second.
   */
  readonly floor: number
  /** Never more, however quick the database is. */
  readonly ceiling: number
}

export interface BackfillProgress {
  readonly name: string
  readonly read: number
  readonly changed: number
  /** Rows that the table has, as its statistics say; 0 where these do not know. */
  readonly about: number
  /** Rows a second. */
  readonly rate: number
  readonly nextAt: Date
  readonly done: boolean
  /** Why the last bite failed, and when; null where it succeeded. */
  readonly lastError: string | null
  readonly failedAt: Date | null
}

/** A bite is the rows of this time, and slower ones halve the rate. */
const biteMillis = 250

export const backfilledRows = Metric.counter("bailiwick_backfill_rows_total", {
  description: "Rows that backfills changed",
  incremental: true,
})

/** Reads the progress of all backfills, or of one. */
export const progressOf = (sql: PgClient.PgClient, name: string | null = null) =>
  sql<BackfillProgress>`
    select b.name, b.read_rows::float8 as read, b.changed_rows::float8 as changed, b.rate, b.next_at as "nextAt",
      b.done_at is not null as done, b.last_error as "lastError", b.failed_at as "failedAt",
      coalesce((select greatest(c.reltuples, 0) from pg_class c where c.oid = to_regclass(b.table_name)), 0)::float8 as about
    from backfills b where ${name}::text is null or b.name = ${name} order by b.name`

const counted = (n: number) => Math.round(n).toLocaleString("en-US")

/** A backfill's progress in words. The rate of a walk that has not begun says nothing: its first bite sets it. */
export const progressText = ({ about, changed, failedAt, lastError, name, nextAt, rate, read }: BackfillProgress) =>
  `${name} has read ${counted(read)} of about ${counted(Math.max(about, read))} rows and changed ${counted(changed)}` +
  (read === 0 ? "" : `, ${counted(rate)} a second at most`) +
  (lastError === null
    ? ""
    : `; its last bite failed at ${
      failedAt!.toISOString()
    }, the next one comes at ${nextAt.toISOString()}: ${lastError}`)

/** Where rows are left before the first bite, that bite raises the rate to its floor. */
const leastRate = 1

/** ON CONFLICT alone would wait for a bite that is in progress. */
const begun = Effect.fnUntraced(function* (sql: PgClient.PgClient, { name, table }: Backfill, rate = leastRate) {
  const now = new Date(yield* Clock.currentTimeMillis)
  yield* sql`
    insert into backfills (name, table_name, rate, next_at, begun_at)
    select ${name}::text, ${table}::text, ${rate}::integer, ${now}::timestamptz, ${now}::timestamptz
    where not exists (select from backfills where name = ${name}) on conflict do nothing`
})

/** The next rows in the order of the key. The limit is a literal: for a parameter the planner would suppose a tenth of the table. */
const nextRows = ({ key, table }: Backfill, columns: string, rows: number, first: boolean) =>
  `select "${key}" as key${columns} from "${table}" ${
    first ? "" : `where "${key}" > $1`
  } order by "${key}" limit ${rows}`

/**
 * Walks over the next rows and locks those that are left, in the order of the key; `left` is asked again of rows that
 * another transaction held. Without the table's name the last ORDER BY would mean the text of the key.
 */
const lockText = (backfill: Backfill, rows: number, first: boolean) => `
  with walked as materialized (${nextRows(backfill, "", rows, first)}), locked as materialized (
    select "${backfill.key}" as key from "${backfill.table}"
    where "${backfill.key}" = any(array(select key from walked)) and (${backfill.left})
    order by "${backfill.key}" for no key update
  )
  select (select count(*)::int from walked) as read, (select array_agg(key)::text from locked) as keys,
    (select key::text from walked order by walked.key desc limit 1) as "lastKey"`

/**
 * Changes the locked rows. It is a statement of its own, so that what it reads of them is what they are since they are
 * locked: an INSERT in the statement that locks would copy what they were when that one began.
 */
const fillText = ({ fill, key, left, table }: Backfill) => `
  with bite as materialized (select "${key}" as key from "${table}" where "${key}" = any($1) and (${left})), changed as (
    ${fill} returning 1
  )
  select count(*)::int as changed from changed`

interface State {
  readonly afterKey: string | null
  readonly rate: number
  readonly nextAt: Date
}

interface Walked {
  readonly read: number
  /** The array of the locked rows' keys, as PostgreSQL writes it; null: none. */
  readonly keys: string | null
  readonly lastKey: string | null
}

const clamped = (rate: number, { ceiling, floor }: Pace) => Math.ceil(Math.min(ceiling, Math.max(floor, rate)))

/** The rate after a bite that took so long. */
const nextRate = (rate: number, tookMillis: number, pace: Pace) => {
  if (tookMillis > biteMillis) return clamped(rate / 2, pace)
  return tookMillis < biteMillis / 2 ? clamped(rate * 1.25, pace) : rate
}

/** Takes the next bite and writes the progress; milliseconds to wait, or null where the backfill is finished. */
const taken = Effect.fnUntraced(function* (sql: PgClient.PgClient, backfill: Backfill, state: State, pace: Pace) {
  const began = yield* Clock.currentTimeMillis
  const rate = clamped(state.rate, pace)
  const rows = Math.max(1, Math.floor(rate * biteMillis / 1_000))
  const { afterKey } = state
  const text = lockText(backfill, rows, afterKey === null)
  const [walked] = yield* sql.unsafe<Walked>(text, afterKey === null ? [] : [afterKey])
  const { keys, lastKey, read } = walked!
  const [filled] = keys === null ? [] : yield* sql.unsafe<{ changed: number }>(fillText(backfill), [keys])
  const { changed } = filled ?? { changed: 0 }
  const ended = yield* Clock.currentTimeMillis
  // The connection rests for as long as the bite took, even where it only read rows.
  const wait = Math.max(changed * 1_000 / rate - (ended - began), ended - began)
  const done = read < rows
  yield* sql`
    update backfills set after_key = coalesce(${lastKey}, after_key), read_rows = read_rows + ${read},
      changed_rows = changed_rows + ${changed}, rate = ${nextRate(rate, ended - began, pace)},
      next_at = ${new Date(ended + Math.ceil(wait))}, done_at = ${done ? new Date(ended) : null},
      revision = revision + 1, last_error = null, failed_at = null
    where name = ${backfill.name}`
  yield* faultPoint("backfill.written")
  return { changed, wait: done ? null : Math.ceil(wait) }
})

/** Milliseconds until the next bite after one that failed; each further failure doubles them, up to the most. */
const [restMillis, mostRestMillis] = [1_000, 60_000]

/** A bite that failed, on a lock, on its time or on a row, makes the next ones smaller and later, and says why. */
const failed = Effect.fnUntraced(
  function* (sql: PgClient.PgClient, { name }: Backfill, { floor }: Pace, error: SqlError.SqlError) {
    const now = new Date(yield* Clock.currentTimeMillis)
    yield* sql`
      update backfills set rate = greatest(rate / 2, ${floor}), last_error = left(${reasonOf(error)}, 500),
        failed_at = ${now}::timestamptz, next_at = ${now}::timestamptz + make_interval(secs => least(${mostRestMillis}, greatest(
          ${restMillis}, case when last_error is null then 0 else 2000 * extract(epoch from next_at - failed_at) end)) / 1000.0)
      where name = ${name}`
  },
  (noted) => Effect.ignore(noted),
)

/**
 * Takes one bite where its time has come and no other process is at it. Gives the milliseconds until the next one, or null
 * where the backfill is finished.
 */
export const bite = Effect.fn("Backfills.bite")(function* (sql: PgClient.PgClient, backfill: Backfill, pace: Pace) {
  yield* begun(sql, backfill, pace.floor)
  const bitten = yield* Effect.gen(function* () {
    const [state] = yield* sql<State>`
      select after_key as "afterKey", rate, next_at as "nextAt" from backfills
      where name = ${backfill.name} and done_at is null for update skip locked`
    if (state === undefined) return null
    const early = state.nextAt.getTime() - (yield* Clock.currentTimeMillis)
    return early > 0 ? { changed: 0, wait: early } : yield* taken(sql, backfill, state, pace)
  }).pipe(sql.withTransaction, Effect.tapError((error) => failed(sql, backfill, pace, error)))
  if (bitten !== null) {
    yield* faultPoint("backfill.committed")
    yield* Metric.update(backfilledRows, bitten.changed)
    return bitten.wait
  }
  const [now] = yield* progressOf(sql, backfill.name)
  return now!.done ? null : biteMillis
})

/** A span of a look: rows that one statement reads, at first and at most, in about this time. */
const [firstSpan, longestSpan, spanMillis] = [1_000, 200_000, 1_000]

const spanText = (backfill: Backfill, rows: number, first: boolean) => `
  with span as materialized (${nextRows(backfill, `, (${backfill.left}) is true as is_left`, rows, first)})
  select count(*)::int as read, coalesce(bool_or(is_left), false) as found,
    (select key::text from span order by span.key desc limit 1) as "lastKey"
  from span`

interface Span {
  readonly read: number
  readonly found: boolean
  readonly lastKey: string | null
}

const isTooSlow = (error: unknown) => SqlError.isSqlError(error) && error.reason._tag === "StatementTimeoutError"

/**
 * Whether any row is left. Where none is, all rows are read in the order of the key, which holds up no write: each
 * statement reads a span of them, smaller ones where it takes longer than a statement may, so a table of any size passes.
 */
const anyLeft = Effect.fnUntraced(function* (sql: PgClient.PgClient, backfill: Backfill) {
  let [afterKey, rows, most]: [string | null, number, number] = [null, firstSpan, longestSpan]
  for (;;) {
    const began = yield* Clock.currentTimeMillis
    const text = spanText(backfill, rows, afterKey === null)
    const [span]: ReadonlyArray<Span> = yield* sql.unsafe<Span>(text, afterKey === null ? [] : [afterKey]).pipe(
      Effect.catchIf((error) => rows > 1 && isTooSlow(error), () => Effect.succeed([])),
    )
    if (span === undefined) {
      most = Math.ceil(rows / 2)
      rows = Math.ceil(rows / 8)
      continue
    }
    if (span.found) return true
    if (span.read < rows) return false
    afterKey = span.lastKey
    const took = (yield* Clock.currentTimeMillis) - began
    rows = took > spanMillis ? Math.ceil(rows / 2) : took < spanMillis / 2 ? Math.min(rows * 2, most) : rows
  }
})

interface Seen {
  readonly revision: string
  readonly done: boolean
  /** Rows of this walk were read, and it is not finished. */
  readonly walking: boolean
}

const seen = Effect.fnUntraced(function* (sql: PgClient.PgClient, { name }: Backfill) {
  const [state] = yield* sql<Seen>`
    select revision::text as revision, done_at is not null as done, read_rows > 0 and done_at is null as walking
    from backfills where name = ${name}`
  return state!
})

/**
 * Whether no row needs the backfill any more. Where it had ended and rows are left, it begins anew: an older program wrote
 * them after the walk had passed.
 *
 * What a look found counts only where no bite was taken and no other look began the walk anew meanwhile: the row's
 * revision tells. A bite that is in progress has the row's lock, and is waited for.
 */
export const isFilled = Effect.fn("Backfills.isFilled")(function* (sql: PgClient.PgClient, backfill: Backfill) {
  yield* begun(sql, backfill)
  for (;;) {
    const { done, revision, walking } = yield* seen(sql, backfill)
    if (walking) return false
    const filled = !(yield* anyLeft(sql, backfill))
    if (!filled && !done) return false
    if (filled && done) {
      if ((yield* seen(sql, backfill)).revision === revision) return true
      continue
    }
    const doneAt = filled ? new Date(yield* Clock.currentTimeMillis) : null
    const settled = yield* sql`
      update backfills set after_key = null, read_rows = case when ${filled} then read_rows else 0 end,
        done_at = ${doneAt}, revision = revision + 1
      where name = ${backfill.name} and revision = ${revision}::bigint returning 1`
    if (settled.length > 0) return filled
  }
})
