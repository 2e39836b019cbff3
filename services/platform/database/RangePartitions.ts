/**
 * Tables partitioned by the UUIDv7 of their rows, one partition for each UTC day or month of it. Partitions are made
 * ahead and dropped whole when their retention is over; the default partition takes rows whose partition does not exist
 * yet, and rows that outlive theirs. The role that owns the tables does all of this, one process at a time.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import { leastIdAt } from "../Ids.ts"
import { tryLock } from "./AdvisoryLocks.ts"

/** Days or months, numbered without a gap. */
export interface Unit {
  readonly of: (millis: number) => number
  readonly startOf: (n: number) => number
  /** Digits of its date in a partition's name. */
  readonly digits: number
}

export const dayMillis = 24 * 60 * 60_000

export const days: Unit = {
  of: (millis) => Math.floor(millis / dayMillis),
  startOf: (n) => n * dayMillis,
  digits: 8,
}

export const months: Unit = {
  of: (millis) => {
    const at = new Date(millis)
    return at.getUTCFullYear() * 12 + at.getUTCMonth()
  },
  startOf: (n) => Date.UTC(Math.floor(n / 12), n % 12),
  digits: 6,
}

export interface Parent {
  readonly table: string
  /** The UUIDv7 column by which rows are partitioned. */
  readonly key: string
  readonly unit: Unit
  /** Partitions that are made ahead of the present one. */
  readonly ahead: number
  /** SQL of a condition: rows for which it holds outlive their partition. */
  readonly kept: string
  /** Storage parameters of each partition. */
  readonly storage: string
  /** Whether rows never change: then the rows to keep can be read before the table is locked. */
  readonly appendOnly: boolean
}

export interface Partition {
  readonly name: string
  readonly number: number
  /** Whether it holds everything before its end: the table as it was before it had partitions. */
  readonly fromStart: boolean
}

export const nameOf = ({ table, unit }: Pick<Parent, "table" | "unit">, n: number): string =>
  `${table}_p${new Date(unit.startOf(n)).toISOString().slice(0, 10).replaceAll("-", "").slice(0, unit.digits)}`

const numberOf = ({ unit }: Parent, name: string): number => {
  const digits = `${name.slice(-unit.digits)}01`
  return unit.of(Date.parse(`${digits.slice(0, 4)}-${digits.slice(4, 6)}-${digits.slice(6, 8)}T00:00:00Z`))
}

/** All partitions except the default one. */
export const existing = (
  owner: PgClient.PgClient,
  parent: Parent,
): Effect.Effect<ReadonlyArray<Partition>, SqlError.SqlError> =>
  Effect.map(
    owner<{ name: string; fromStart: boolean }>`
      select c.relname as name, pg_get_expr(c.relpartbound, c.oid) like '%(MINVALUE)%' as "fromStart"
      from pg_inherits i join pg_class c on c.oid = i.inhrelid
      where i.inhparent = ${parent.table}::regclass and c.relname ~ ${`_p[0-9]{${parent.unit.digits}}$`} order by 1`,
    (rows) => rows.map((row) => ({ ...row, number: numberOf(parent, row.name) })),
  )

/** The numbers of `wanted` that have no partition. */
export const lacking = (found: ReadonlyArray<Partition>, wanted: ReadonlyArray<number>): ReadonlyArray<number> =>
  wanted.filter((n) => !found.some(({ fromStart, number }) => number === n || fromStart && n < number))

/** Whether a partition is missing that was due at the end of the last day or month: then the upkeep does not run. */
export const isLate = (found: ReadonlyArray<Partition>, { ahead, unit }: Parent, now: number): boolean =>
  lacking(found, [unit.of(now) + ahead - 1]).length > 0

/** Whether this process does the upkeep of partitions in the current transaction; one process does it for all. */
export const isOurTurn = (owner: PgClient.PgClient) => tryLock(owner, "partitions")

/**
 * Locks the tables exclusively for the rest of the transaction, before rows move between partitions. A statement that
 * was planned before the move would wait for the default partition's lock only, then miss the rows that moved, and not
 * write them; a statement that waits for the table itself is planned after the move.
 */
export const exclude = (owner: PgClient.PgClient, parents: ReadonlyArray<Parent>) =>
  owner.unsafe(`lock table ${parents.map(({ table }) => table).join(", ")} in access exclusive mode`)

/** Makes a partition and moves its rows out of the default partition, in one transaction. */
export const create = Effect.fnUntraced(function* (owner: PgClient.PgClient, parent: Parent, n: number) {
  const { key, storage, table, unit } = parent
  const name = nameOf(parent, n)
  const from = leastIdAt(unit.startOf(n))
  const to = leastIdAt(unit.startOf(n + 1))
  yield* owner.unsafe(`create table ${name} (like ${table} including defaults including constraints) ${storage}`)
  yield* owner.unsafe(
    `with late as (delete from ${table}_default where ${key} >= '${from}' and ${key} < '${to}' returning *)
    insert into ${name} select * from late`,
  )
  yield* owner.unsafe(`alter table ${table} attach partition ${name} for values from ('${from}') to ('${to}')`)
})

/** Drops a partition and moves the rows that are kept into the default partition, in one transaction. */
export const drop = Effect.fnUntraced(function* (
  owner: PgClient.PgClient,
  { appendOnly, kept, table }: Parent,
  name: string,
) {
  const carried = appendOnly ? `${name}_kept` : name
  if (appendOnly) yield* owner.unsafe(`create table ${carried} as select * from ${name} where ${kept}`)
  yield* owner.unsafe(`alter table ${table} detach partition ${name}`)
  yield* owner.unsafe(`insert into ${table} select * from ${carried} where ${kept}`)
  yield* owner.unsafe(`drop table ${appendOnly ? `${name}, ${carried}` : name}`)
})
