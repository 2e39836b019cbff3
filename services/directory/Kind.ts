/** What a domain tells the directory about one of its kinds: enough for the one applier to serve them all. */
import type { Effect, Schema } from "effect"
import type { SqlError } from "effect/sql"

export type ColumnType = "uuid" | "text" | "integer" | "boolean" | "timestamptz"

export interface Kind {
  readonly kind: string
  /** Has `id, version, removed, updated_at` beside `columns`. */
  readonly table: string
  /** The feed's fields, in the table's own names. */
  readonly columns: Readonly<Record<string, ColumnType>>
  readonly fields: Schema.Codec<object, object>
  /** SQL of what an accepted newer line writes beside or in place of a field (`t` is the row, `excluded` the line). */
  readonly set?: Readonly<Record<string, string>>
  /** Runs in the same transaction, after the rows of these ids changed and every earlier kind of the batch did. */
  readonly after?: (ids: ReadonlyArray<string>, now: Date) => Effect.Effect<void, SqlError.SqlError>
}
