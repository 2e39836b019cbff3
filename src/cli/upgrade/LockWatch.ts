/** Measures the locks that a migration holds: looks at them every few milliseconds on a connection of its own. */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"

export interface LockHeld {
  readonly table: string
  /** PostgreSQL's name of the mode. */
  readonly mode: string
  readonly millis: number
}

const everyMillis = 5

/** The modes that make a write wait; AccessExclusiveLock makes a read wait, too. */
const blocking = ["ShareLock", "ShareRowExclusiveLock", "ExclusiveLock", "AccessExclusiveLock"]

/** Runs `work`; returns its milliseconds, and the longest time that each lock on one of these tables was held. */
export const watchLocks = Effect.fnUntraced(function* <A, E, R>(
  sql: PgClient.PgClient,
  tables: ReadonlyArray<string>,
  work: Effect.Effect<A, E, R>,
) {
  const since = new Map<string, number>()
  const longest = new Map<string, LockHeld>()
  const look = Effect.gen(function* () {
    const rows = yield* sql<{ table: string; mode: string }>`
      select distinct c.relname as table, l.mode from pg_locks l join pg_class c on c.oid = l.relation
      where l.database = (select oid from pg_database where datname = current_database())
        and l.granted and l.pid <> pg_backend_pid() and l.mode = any(${blocking}::text[])
        and c.relname = any(${[...tables]}::text[])`
    const now = performance.now()
    const held = new Set(rows.map(({ mode, table }) => `${table} ${mode}`))
    for (const key of since.keys()) if (!held.has(key)) since.delete(key)
    for (const { mode, table } of rows) {
      const key = `${table} ${mode}`
      const from = since.get(key) ?? now
      since.set(key, from)
      const millis = Math.max(longest.get(key)?.millis ?? 0, Math.ceil(now - from) + everyMillis)
      longest.set(key, { table, mode, millis })
    }
  })
  const began = performance.now()
  yield* Effect.raceFirst(work, Effect.forever(Effect.andThen(Effect.ignore(look), Effect.sleep(everyMillis))))
  const locks = [...longest.values()].sort((a, b) => b.millis - a.millis)
  return { millis: Math.round(performance.now() - began), locks }
})
