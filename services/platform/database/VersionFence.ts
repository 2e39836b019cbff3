/**
 * The fence between versions of the program on one database. A program's version is the number of its newest migration.
 * The schema states two numbers: its newest applied migration, and in `schema_meta.min_app` the oldest program that it
 * admits, which a migration raises when it removes what older programs use (docs/upgrading.md).
 *
 * A running program reads both every second, and whether the server takes writes: a standby, or a primary that became
 * one, does not. While it is not admitted, its worker loops and consumers take no work and its HTTP edge refuses
 * commands; reads are answered.
 */
import { Context, Effect, Latch, Layer, Schema } from "effect"
import type { SqlError } from "effect/sql"
import { Database } from "./Database.ts"
import { inTurn } from "./RetryOnLockTimeout.ts"
import { cliCommand } from "../CommandSpelling.ts"

/** The versions of a schema, and whether its server takes writes. */
export interface SchemaVersion {
  /** Its newest applied migration; 0 where there is none. */
  readonly applied: number
  /** The oldest program that it admits. */
  readonly minApp: number
  /** Whether its server takes no writes: it is in recovery, or set so. */
  readonly readOnly: boolean
}

/** Why a program may not work on a schema, and what to do, on one line; null: it may. */
export const refusalOf = (program: number, { applied, minApp, readOnly }: SchemaVersion): string | null => {
  if (readOnly) {
    return "the database is read-only, as a standby is: DATABASE_URL and DATABASE_OWNER_URL have to name the server " +
      "that takes writes"
  }
  if (minApp > program) {
    return `the database is too new for this program, which is version ${program}: the schema admits versions from ` +
      `${minApp} on; start a newer version of the program`
  }
  return applied < program
    ? `the database is too old for this program: migration ${applied} of ${program} is applied; ` +
      `type "${cliCommand("migrate")}" with DATABASE_OWNER_URL`
    : null
}

/** The schema admits newer programs only. */
export class TooNew extends Schema.TaggedError<TooNew>()("TooNew", { message: Schema.String }) {}

/** The database takes no writes. */
export class ReadOnly extends Schema.TaggedError<ReadOnly>()("ReadOnly", { message: Schema.String }) {}

/** Reads the schema's version; an empty database admits every program. A migration under way locks what it reads. */
export const schemaVersion = Effect.gen(function* () {
  const { sql } = yield* Database
  // Of a standby it is always on (PostgreSQL, 27.4).
  const [there] = yield* sql<{ readable: boolean; readOnly: boolean }>`
    select current_setting('transaction_read_only') = 'on' as "readOnly", coalesce(has_table_privilege(to_regclass('effect_sql_migrations'), 'select')
      and has_table_privilege(to_regclass('schema_meta'), 'select'), false) as readable`
  const { readOnly, readable } = there!
  if (!readable) return { applied: 0, minApp: 0, readOnly } satisfies SchemaVersion
  const [row] = yield* sql<Omit<SchemaVersion, "readOnly">>`
    select (select coalesce(max(migration_id), 0)::int from effect_sql_migrations) as applied,
      (select coalesce(max(min_app), 0)::int from schema_meta) as "minApp"`
  return { ...row!, readOnly } satisfies SchemaVersion
})

export class VersionFence extends Context.Reference<{
  /** Why this program takes no work now, and what to do; null: it works. */
  readonly refusal: Effect.Effect<string | null>
  /** Waits until the schema admits this program. */
  readonly admitted: Effect.Effect<void>
  /** Waits until the schema does not admit this program. */
  readonly refused: Effect.Effect<void>
}>("bailiwick/services/platform/database/VersionFence", {
  defaultValue: () => ({ refusal: Effect.succeed(null), admitted: Effect.void, refused: Effect.never }),
}) {}

/** A failed read keeps what was known: without the database there is no work either. */
const watch = Effect.fnUntraced(function* (
  program: number,
  everyMillis: number,
  read: Effect.Effect<SchemaVersion, SqlError.SqlError>,
) {
  const admits = yield* Latch.make(true)
  const refuses = yield* Latch.make(false)
  let refusal: string | null = null
  const look = Effect.gen(function* () {
    const found = refusalOf(program, yield* read)
    if (found === refusal) return
    const was = refusal
    refusal = found
    if (found === null) {
      refuses.closeUnsafe()
      admits.openUnsafe()
      return yield* Effect.logWarning("the database admits this program again: it takes work")
    }
    admits.closeUnsafe()
    refuses.openUnsafe()
    if (was === null) yield* Effect.logError(`${found}; it takes no work, and answers reads`)
  })
  yield* inTurn(look)
  yield* Effect.sleep(everyMillis).pipe(
    Effect.andThen(look),
    Effect.catch((error) => Effect.logDebug("the schema's version was not read", error)),
    Effect.forever,
    Effect.forkScoped,
  )
  return { refusal: Effect.sync(() => refusal), admitted: admits.await, refused: refuses.await }
})

/** Watches the schema for a program of this version. */
export const versionFence = (program: number, everyMillis = 1_000) =>
  Layer.effect(
    VersionFence,
    Effect.gen(function* () {
      const database = yield* Database
      return yield* watch(program, everyMillis, Effect.provideService(schemaVersion, Database, database))
    }),
  )
