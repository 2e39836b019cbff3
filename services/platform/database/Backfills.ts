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
import { faultPoint } from "../Failpoints.ts"
import { allowLonger } from "./Database/StalledConnections.ts"

export interface Backfill {
  /** Its progress is kept under this name, which no other backfill ever has. */
  readonly name: string
  readonly table: string
  /** The column by which the table is walked: unique, never null, never changed. */
  readonly key: string
  /** SQL: the condition of the rows that still need it. */
  readonly left: string
  /** SQL: an UPDATE, INSERT or DELETE without RETURNING, for the rows whose keys are in `bite (key)`. */
  readonly fill: string
}

/** Rows a second that are changed. */
export interface Pace {
  /** Never fewer, however slow the database is: a backfill ends. */
  readonly floor: number
  /** Never more, however quick it is. */
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
      b.done_at is not null as done,
      coalesce((select greatest(c.reltuples, 0) from pg_class c where c.oid = to_regclass(b.table_name)), 0)::float8 as about
    from backfills b where ${name}::text is null or b.name = ${name} order by b.name`

const counted = (n: number) => Math.round(n).toLocaleString("en-US")

/** A backfill's progress in words. */
export const progressText = ({ about, changed, name, rate, read }: BackfillProgress) =>
  `${name} has read ${counted(read)} of about ${counted(Math.max(about, read))} rows and changed ${
    counted(changed)
  }, ` +
  `${counted(rate)} a second at most`

const begun = Effect.fnUntraced(function* (sql: PgClient.PgClient, { name, table }: Backfill, { floor }: Pace) {
  const now = new Date(yield* Clock.currentTimeMillis)
  yield* sql`
    insert into backfills (name, table_name, rate, next_at, begun_at)
    values (${name}, ${table}, ${floor}, ${now}, ${now}) on conflict do nothing`
})

/**
 * The statement of a bite. Its limit is a literal: the planner would suppose a tenth of the table for a parameter, and read
 * all of it. Rows are locked in the order of the key, and asked again for `left` once they are. Without the table's name the last
 * ORDER BY would mean the text of the key.
 */
const textOf = ({ fill, key, left, table }: Backfill, rows: number, first: boolean) => `
  with walked as materialized (
    select "${key}" as key from "${table}" ${first ? "" : `where "${key}" > $1`} order by "${key}" limit ${rows}
  ), bite as materialized (
    select "${key}" as key from "${table}" where "${key}" = any(array(select key from walked)) and (${left})
    order by "${key}" for no key update
  ), changed as (
    ${fill} returning 1
  )
  select (select count(*)::int from walked) as read, (select count(*)::int from changed) as changed,
    (select key::text from walked order by walked.key desc limit 1) as "lastKey"`

interface State {
  readonly afterKey: string | null
  readonly rate: number
  readonly nextAt: Date
}

interface Bitten {
  readonly read: number
  readonly changed: number
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
  const text = textOf(backfill, rows, afterKey === null)
  const [found] = yield* sql.unsafe<Bitten>(text, afterKey === null ? [] : [afterKey])
  const { changed, lastKey, read } = found!
  const ended = yield* Clock.currentTimeMillis
  // The connection rests for as long as the bite took, even where it only read rows.
  const wait = Math.max(changed * 1_000 / rate - (ended - began), ended - began)
  const done = read < rows
  yield* sql`
    update backfills set after_key = coalesce(${lastKey}, after_key), read_rows = read_rows + ${read},
      changed_rows = changed_rows + ${changed}, rate = ${nextRate(rate, ended - began, pace)},
      next_at = ${new Date(ended + Math.ceil(wait))}, done_at = ${done ? new Date(ended) : null}
    where name = ${backfill.name}`
  yield* faultPoint("backfill.written")
  return { changed, wait: done ? null : Math.ceil(wait) }
})

/** A bite that failed, on a lock or on its time, makes the next ones smaller. */
const slowed = (sql: PgClient.PgClient, { name }: Backfill, { floor }: Pace) =>
  Effect.ignore(sql`update backfills set rate = greatest(rate / 2, ${floor}) where name = ${name}`)

/**
 * Takes one bite where its time has come and no other process is at it. Gives the milliseconds until the next one, or null
 * where the backfill is finished.
 */
export const bite = Effect.fn("Backfills.bite")(function* (sql: PgClient.PgClient, backfill: Backfill, pace: Pace) {
  yield* begun(sql, backfill, pace)
  const bitten = yield* Effect.gen(function* () {
    const [state] = yield* sql<State>`
      select after_key as "afterKey", rate, next_at as "nextAt" from backfills
      where name = ${backfill.name} and done_at is null for update skip locked`
    if (state === undefined) return null
    const early = state.nextAt.getTime() - (yield* Clock.currentTimeMillis)
    return early > 0 ? { changed: 0, wait: early } : yield* taken(sql, backfill, state, pace)
  }).pipe(sql.withTransaction, Effect.tapError(() => slowed(sql, backfill, pace)))
  if (bitten !== null) {
    yield* faultPoint("backfill.committed")
    yield* Metric.update(backfilledRows, bitten.changed)
    return bitten.wait
  }
  const [now] = yield* progressOf(sql, backfill.name)
  return now!.done ? null : biteMillis
})

/** Whether any row is left; reads the whole table where none is, which holds up no write. */
const anyLeft = (sql: PgClient.PgClient, { left, table }: Backfill) =>
  Effect.gen(function* () {
    yield* sql`set local statement_timeout = '300s'`
    const [row] = yield* sql.unsafe<{ found: boolean }>(`select exists (select from "${table}" where ${left}) as found`)
    return row!.found
  }).pipe(sql.withTransaction, allowLonger)

/**
 * Whether no row needs the backfill any more. Where it had ended and rows are left, it begins anew: an older program wrote
 * them after the walk had passed.
 */
export const isFilled = Effect.fn("Backfills.isFilled")(function* (
  sql: PgClient.PgClient,
  backfill: Backfill,
  pace: Pace,
) {
  const [found] = yield* progressOf(sql, backfill.name)
  if (found !== undefined && !found.done && found.read > 0) return false
  const filled = !(yield* anyLeft(sql, backfill))
  const done = filled ? new Date(yield* Clock.currentTimeMillis) : null
  yield* begun(sql, backfill, pace)
  yield* sql`
    update backfills set after_key = null, read_rows = case when ${filled} then read_rows else 0 end, done_at = ${done}
    where name = ${backfill.name}`
  return filled
})
