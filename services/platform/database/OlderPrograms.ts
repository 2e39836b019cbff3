/** Closes the schema to programs of earlier versions, where these would rely on what no longer holds (VersionFence.ts). */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import { Database } from "./Database.ts"

/** A program reads every second which versions the schema admits, and finishes what it has begun. */
export const closedMillis = 2_000

/** Work that a program has in hand when it finds the schema closed ends within this: a push has a lease of 6 s. */
const inHandMillis = 60_000

/** Closes the schema to programs before this version, as the tables' owner; returns whether it was open to them. */
export const closeToOlder = Effect.fnUntraced(function* (version: number) {
  const { owner } = yield* Database
  const now = new Date(yield* Clock.currentTimeMillis)
  const closed = yield* owner`
    update schema_meta set min_app = ${version}, closed_at = ${now} where min_app < ${version} returning min_app`
  return closed.length > 0
})

/**
 * Whether the schema admits no program before this version, and none has work in hand any more; then it never will again.
 * No time is known where a migration has closed it.
 */
export const isClosedToOlder = Effect.fnUntraced(function* (sql: PgClient.PgClient, version: number) {
  const ended = new Date((yield* Clock.currentTimeMillis) - closedMillis - inHandMillis)
  const [row] = yield* sql<{ closed: boolean }>`
    select coalesce(bool_or(min_app >= ${version} and coalesce(closed_at <= ${ended}, true)), false) as closed
    from schema_meta`
  return row!.closed
})
