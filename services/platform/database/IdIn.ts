/** SQL that finds rows by one id or by several. */
import type { PgClient } from "@effect/sql-pg"
import type { Statement } from "effect/sql"

/**
 * The SQL condition that a column of type `uuid` or `text` is one of these ids; false of no ids. `column` may name an
 * alias: `t.id`.
 *
 * A single id is compared with `=`. Of an array that is a parameter PostgreSQL assumes ten elements, so a generic plan
 * looks ten times as expensive as the plan for one id at hand, and the statement would be planned at each execution.
 */
export const idIn = (
  sql: PgClient.PgClient,
  column: string,
  type: "uuid" | "text",
  ids: ReadonlyArray<string>,
): Statement.Fragment => {
  const [id] = ids
  return id !== undefined && ids.length === 1
    ? sql`${sql(column)} = ${id}::${sql.literal(type)}`
    : sql`${sql(column)} = any(${[...ids]}::${sql.literal(type)}[])`
}
