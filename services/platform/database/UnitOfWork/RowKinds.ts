/** Rows by kind, and the one statement that writes them. */
import type { PgClient } from "@effect/sql-pg"
import { Array, Effect } from "effect"
import type { SqlError, Statement } from "effect/sql"

/** One data-modifying statement with a name; only by its name another part can see the rows that it returns. */
export interface Part {
  readonly name: string
  readonly statement: Statement.Fragment
}

export interface Kind<A> {
  /** A unique name: all items of a name are written together. */
  readonly name: string
  /** The statements that write the items. Their text should not depend on the items: each text is planned once. */
  readonly parts: (items: Array.NonEmptyReadonlyArray<A>) => Array.NonEmptyReadonlyArray<Part>
}

/** Gathered rows, by the names of their kinds. */
export type Rows = Map<string, { readonly kind: Kind<unknown>; readonly items: globalThis.Array<unknown> }>

/** Gathers items of a kind. */
export const addRows = <A>(rows: Rows, kind: Kind<A>, items: ReadonlyArray<A>): void => {
  const known = rows.get(kind.name)
  if (known === undefined) rows.set(kind.name, { kind: kind as Kind<unknown>, items: [...items] })
  else known.items.push(...items)
}

/** The statements that write gathered rows, sorted by kind, so that the same kinds make the same text. */
export const partsOf = (rows: Rows): ReadonlyArray<Part> =>
  [...rows.values()].sort((a, b) => a.kind.name < b.kind.name ? -1 : 1)
    .flatMap(({ items, kind }) => Array.isArrayNonEmpty(items) ? kind.parts(items) : [])

/** Runs several statements as one; none where there are none. */
export const writeParts = (
  sql: PgClient.PgClient,
  parts: ReadonlyArray<Part>,
): Effect.Effect<void, SqlError.SqlError> => {
  const [only] = parts
  if (only === undefined) return Effect.void
  if (parts.length === 1) return Effect.asVoid(sql`${only.statement}`)
  const named = parts.map(({ name, statement }) => sql`${sql(name)} as (${statement})`)
  return Effect.asVoid(sql`with recursive ${sql.join(", ", false)(named)} select 1 as done`)
}

/**
 * Inserts rows of a table, given as JSON: one parameter, however many rows there are. A parameter for each field costs
 * more than the rows themselves. `columns` are the types of the written columns.
 */
export const insertion = <const Columns extends Readonly<Record<string, string>>>(
  sql: PgClient.PgClient,
  table: string,
  columns: Columns,
): Kind<{ readonly [Column in keyof Columns]: unknown }> => {
  const names = sql.literal(Object.keys(columns).join(", "))
  const typed = sql.literal(Object.entries(columns).map(([name, type]) => `${name} ${type}`).join(", "))
  return {
    name: table,
    parts: (rows) => [{
      name: `new_${table}`,
      statement: sql`
        insert into ${sql(table)} (${names})
        select ${names} from json_to_recordset(${JSON.stringify(rows)}::json) r(${typed})`,
    }],
  }
}
