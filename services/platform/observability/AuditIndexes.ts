/**
 * Indexes by which an object's audit records are found, in addition to those of the migrations. The audit may hold
 * gigabytes, so the upkeep of partitions builds each month's index concurrently; months made later get theirs from the
 * table's index. An index that a killed process left half built is dropped and built anew.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import { allowLonger } from "../database/Database/StalledConnections.ts"

const table = "audit_records"

/** Definitions by the suffix of the index's name. */
const definitions: Readonly<Record<string, string>> = {
  // Without the ids of refused requests: one record may list hundreds of them, and they have an index of their own.
  details: `using gin ((details - 'request_ids') jsonb_path_ops)`,
  // The acts of people, for themselves and for the operators. Records of accounts and of the system do without: they
  // are the many, and an entry costs each of them.
  person: `(actor, id) where actor like 'person:%'`,
  object: `(split_part(subject, ':', 2), id) where subject is not null`,
}

interface Lacking {
  readonly partition: string
  /** Null: there is no index of the name. */
  readonly valid: boolean | null
  /** Whether a process is building it. */
  readonly building: boolean
}

const lacking = (owner: PgClient.PgClient, suffix: string) =>
  owner<Lacking>`
    select p.relname as partition, x.indisvalid as valid, exists (
        select from pg_stat_progress_create_index b where b.index_relid = c.oid) as building
    from pg_inherits i join pg_class p on p.oid = i.inhrelid
    left join pg_class c on c.relname = p.relname || ${`_${suffix}`} and c.relnamespace = p.relnamespace
    left join pg_index x on x.indexrelid = c.oid
    where i.inhparent = ${table}::regclass and not exists (
      select from pg_index y join pg_inherits h on h.inhrelid = y.indexrelid
      where y.indrelid = p.oid and h.inhparent = ${`${table}_${suffix}`}::regclass)
    order by 1`

const build = Effect.fnUntraced(function* (
  owner: PgClient.PgClient,
  suffix: string,
  { building, partition, valid }: Lacking,
) {
  if (building) return
  const name = `${partition}_${suffix}`
  if (valid === false) yield* owner.unsafe(`drop index concurrently if exists ${name}`)
  if (valid !== true) {
    yield* owner.unsafe(`create index concurrently if not exists ${name} on ${partition} ${definitions[suffix]}`)
  }
  yield* owner.unsafe(`alter index ${table}_${suffix} attach partition ${name}`)
})

/** Builds missing indexes, on the owner's one connection, outside any transaction. */
export const keepAuditIndexes = (owner: PgClient.PgClient): Effect.Effect<void, SqlError.SqlError> =>
  Effect.gen(function* () {
    for (const [suffix, definition] of Object.entries(definitions)) {
      const there = yield* owner`select from pg_class where relname = ${`${table}_${suffix}`}`
      if (there.length === 0) {
        yield* owner.unsafe(`create index if not exists ${table}_${suffix} on only ${table} ${definition}`)
      }
      const left = yield* lacking(owner, suffix)
      if (left.length === 0) continue
      yield* owner`set statement_timeout = '5min'`
      yield* Effect.forEach(left, (one) => build(owner, suffix, one), { discard: true }).pipe(
        allowLonger,
        Effect.ensuring(Effect.ignore(owner`reset statement_timeout`)),
      )
    }
  })
