/** The description of a kind, by which the directory's one applier serves all kinds. */
import { Data, type Effect, type Schema } from "effect"
import type { SqlError } from "effect/sql"
import type { InTransaction } from "../platform/database/UnitOfWork.ts"

export type ColumnType = "uuid" | "text" | "text[]" | "integer" | "boolean" | "timestamptz"

/** A line's id and fields; `fields` is null for a removal. */
export interface DirectoryRow {
  readonly id: string
  readonly fields: Readonly<Record<string, unknown>> | null
}

/** The line contradicts existing rows: only this line is rejected. `detail` repeats no value. */
export class LineRefused extends Data.TaggedError("LineRefused")<{ readonly detail: string }> {}

/**
 * A kind with a history: its lines are applied one by one, in their order among the lines of all kinds with a history,
 * by one applier at a time.
 */
export interface History {
  /** Locks the rows that these lines refer to, which come before the lines' own rows in the order of locks. */
  readonly lock?: (lines: ReadonlyArray<DirectoryRow>) => Effect.Effect<void, SqlError.SqlError>
  /**
   * Ids of lines that may touch several projects, each of which gets a transaction of its own. A guess, without locks.
   */
  readonly several?: (lines: ReadonlyArray<DirectoryRow>) => Effect.Effect<ReadonlySet<string>, SqlError.SqlError>
  /**
   * Runs in the transaction after each line that was written, with the row before (null: unknown) and after, as JSON.
   */
  readonly changed?: (
    before: unknown,
    after: unknown,
    now: Date,
  ) => Effect.Effect<void, SqlError.SqlError | LineRefused, InTransaction>
  /**
   * The column whose decided value overrides a line. A newer line with another value is reported as ignored, with this
   * column.
   */
  readonly decided?: string
  /**
   * For lines that are not trusted (`Trust`): the whole kind is refused, or only the columns named here are guarded.
   */
  readonly guard: "kind" | Guard
}

/**
 * The columns that a line without trust may not change. Such a line can neither remove a row nor revive a removed one.
 * A table with guarded columns also has the column `unfollowed`.
 */
export interface Guard {
  /** SQL of the values that a known row has after the line (`t` is the row, `excluded` the line). */
  readonly known: Readonly<Record<string, string>>
  /** The values that a new row has instead of the line's. */
  readonly fresh: Readonly<Record<string, unknown>>
}

export interface Kind {
  readonly kind: string
  /** The table has the columns `id, version, removed, updated_at` and `columns`. */
  readonly table: string
  /** UUIDs, which are compared in lower case, or opaque text (`[A-Za-z0-9_-]{1,128}`). */
  readonly ids: "uuid" | "text"
  /** The feed's fields, in the table's own names. */
  readonly columns: Readonly<Record<string, ColumnType>>
  readonly fields: Schema.Codec<object, object>
  /** Values of columns that are never null, for lines without them. */
  readonly defaults?: Readonly<Record<string, unknown>>
  /** Columns that get the time at which a row is first written. */
  readonly stamped?: ReadonlyArray<string>
  /**
   * SQL of values that an accepted newer line writes instead of or beside its fields (`t` is the row, `excluded` the
   * line).
   */
  readonly set?: Readonly<Record<string, string>>
  /** For a kind without a history: locks the rows that come before the rows of these lines in the order of locks. */
  readonly lock?: (lines: ReadonlyArray<DirectoryRow>) => Effect.Effect<void, SqlError.SqlError>
  /** Each version has an effect of its own (`set`, `after`), so two versions of one id never share a transaction. */
  readonly traced?: boolean
  /** Runs in the same transaction, after the rows of these ids and of all earlier kinds of the batch were written. */
  readonly after?: (ids: ReadonlyArray<string>, now: Date) => Effect.Effect<void, SqlError.SqlError, InTransaction>
  readonly history?: History
}

/**
 * The trust in the sender of lines: `follow` is trusted fully; `plain` may not decide identities and rights (otherwise
 * any publisher on the broker could make an operator); `none` may send no lines of guarded kinds.
 */
export type Trust = "follow" | "plain" | "none"
