/** What a domain tells the directory about one of its kinds: enough for the one applier to serve them all. */
import { Data, type Effect, type Schema } from "effect"
import type { SqlError } from "effect/sql"

export type ColumnType = "uuid" | "text" | "text[]" | "integer" | "boolean" | "timestamptz"

/** What a line says of one id; `fields` is null for a removal. */
export interface Told {
  readonly id: string
  readonly fields: Readonly<Record<string, unknown>> | null
}

/** The line contradicts what stands: it is rejected, alone. `detail` repeats no value. */
export class LineRefused extends Data.TaggedError("LineRefused")<{ readonly detail: string }> {}

/**
 * A kind with a history: its lines are applied one by one, each in the order in which it was told among all kinds with a
 * history, by one applier at a time.
 */
export interface History {
  /** Locks what these lines name and what stands before their own rows in the order of locks. */
  readonly lock?: (lines: ReadonlyArray<Told>) => Effect.Effect<void, SqlError.SqlError>
  /** Ids of lines that may touch several projects: each of those is a transaction of its own. A guess, without locks. */
  readonly several?: (lines: ReadonlyArray<Told>) => Effect.Effect<ReadonlySet<string>, SqlError.SqlError>
  /** Runs in the transaction after each line that was written, with the row before (null: unknown) and after, as JSON. */
  readonly changed?: (
    before: unknown,
    after: unknown,
    now: Date,
  ) => Effect.Effect<void, SqlError.SqlError | LineRefused>
  /**
   * The column that says what a row is good for. Where it stays as it was decided here, a line that says otherwise did
   * nothing, and is told so.
   */
  readonly decided?: string
  /** Where lines are not followed (`Trust`), this kind is set aside: all of it, or only what is named here. */
  readonly guard: "kind" | Guard
}

/**
 * What a line that is not followed may not say. Neither may it remove a row or revive a removed one. A table with such
 * columns has `unfollowed` too.
 */
export interface Guard {
  /** SQL of what a known row holds after it (`t` is the row, `excluded` the line). */
  readonly known: Readonly<Record<string, string>>
  /** What a new row holds instead of what the line says. */
  readonly fresh: Readonly<Record<string, unknown>>
}

export interface Kind {
  readonly kind: string
  /** Has `id, version, removed, updated_at` beside `columns`. */
  readonly table: string
  /** UUIDs, which are compared in lower case, or opaque text (`[A-Za-z0-9_-]{1,128}`). */
  readonly ids: "uuid" | "text"
  /** The feed's fields, in the table's own names. */
  readonly columns: Readonly<Record<string, ColumnType>>
  readonly fields: Schema.Codec<object, object>
  /** What columns that are never null hold where a line does not say. */
  readonly defaults?: Readonly<Record<string, unknown>>
  /** Columns that hold when a row was first written. */
  readonly stamped?: ReadonlyArray<string>
  /** SQL of what an accepted newer line writes beside or in place of a field (`t` is the row, `excluded` the line). */
  readonly set?: Readonly<Record<string, string>>
  /** Of a kind without a history: locks what stands before the rows of these lines in the order of locks. */
  readonly lock?: (lines: ReadonlyArray<Told>) => Effect.Effect<void, SqlError.SqlError>
  /** What a version says counts although a newer one is there already (`set`, `after`): each is a transaction of its own. */
  readonly traced?: boolean
  /** Runs in the same transaction, after the rows of these ids changed and every earlier kind of the batch did. */
  readonly after?: (ids: ReadonlyArray<string>, now: Date) => Effect.Effect<void, SqlError.SqlError>
  readonly history?: History
}

/**
 * Whom lines come from: `follow` is taken at its word; `plain` may not decide who is who and who may what (anyone
 * on the bus could publish an operator); `none` may tell nothing of kinds with a history.
 */
export type Trust = "follow" | "plain" | "none"
