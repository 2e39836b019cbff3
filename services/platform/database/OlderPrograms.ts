/** Closes the schema to programs of before, where they would take for granted what no longer holds (VersionFence.ts). */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import { Database } from "./Database.ts"

/** A program reads every second which versions the schema admits, and finishes what it has begun. */
export const closedMillis = 2_000

/** Closes the schema to programs before this version, as the tables' owner; returns whether it was open to them. */
export const closeToOlder = Effect.fnUntraced(function* (version: number) {
  const { owner } = yield* Database
  const closed = yield* owner`
    update schema_meta set min_app = ${version} where min_app < ${version} returning min_app`
  return closed.length > 0
})

/** Whether the schema admits no program before this version; then it never will again. */
export const isClosedToOlder = (sql: PgClient.PgClient, version: number) =>
  Effect.map(
    sql<{ closed: boolean }>`select coalesce(max(min_app), 0) >= ${version} as closed from schema_meta`,
    ([row]) => row!.closed,
  )
