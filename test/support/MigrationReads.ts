/** What a statement of a migration reads of tables that the migration did not make, and which functions it calls. */
import type { FuncCall, Node, RangeVar, SelectStmt } from "libpg-query"

/** A relation's name, with its schema where that is not the program's. */
export const nameOf = (relation: RangeVar | undefined) => {
  const { relname = "", schemaname = "public" } = relation ?? {}
  return schemaname === "public" ? relname : `${schemaname}.${relname}`
}

/** All nodes of a kind below a value, also those in subselects. */
const below = <A>(value: unknown, kind: string): ReadonlyArray<A> => {
  if (typeof value !== "object" || value === null) return []
  return Object.entries(value).flatMap(([name, inner]) => [
    ...(name === kind ? [inner as A] : []),
    ...below<A>(inner, kind),
  ])
}

/** The SELECTs of a UNION; of any other query itself. */
const parts = (query: SelectStmt): ReadonlyArray<SelectStmt> => {
  const { larg, rarg } = query
  return larg === undefined || rarg === undefined ? [query] : [...parts(larg), ...parts(rarg)]
}

const queriesOf = (node: Node | undefined): ReadonlyArray<SelectStmt> =>
  node !== undefined && "SelectStmt" in node ? parts(node.SelectStmt) : []

/** A condition that names no column holds for all rows or for none. */
const isConditional = ({ whereClause }: SelectStmt) => below(whereClause, "ColumnRef").length > 0

interface Reading {
  readonly selectStmt?: Node
  readonly withClause?: { readonly ctes?: ReadonlyArray<Node> }
}

/** What an INSERT, or a SELECT, reads of tables other than those in `own`; null: nothing, or rows of one table by a condition. */
export const readFault = (statement: Reading, own: ReadonlySet<string>): string | null => {
  const ctes = (statement.withClause?.ctes ?? []).flatMap((node) =>
    "CommonTableExpr" in node ? [node.CommonTableExpr] : []
  )
  const named = new Set(ctes.map(({ ctename }) => ctename ?? ""))
  const isForeign = (relation: RangeVar) => !own.has(nameOf(relation)) && !named.has(relation.relname ?? "")
  const foreign = below<RangeVar>(statement, "RangeVar").filter(isForeign)
  const queries = [...queriesOf(statement.selectStmt), ...ctes.flatMap(({ ctequery }) => queriesOf(ctequery))]
  // Of these the only table is read by a condition.
  const simple = queries.filter((query) => {
    const [from, ...others] = query.fromClause ?? []
    return from !== undefined && others.length === 0 && "RangeVar" in from && isForeign(from.RangeVar)
  })
  if (simple.some((query) => !isConditional(query))) {
    return "copies a whole table in one statement: leave it to a backfill"
  }
  return foreign.length > simple.length
    ? "reads tables of any size in a join or a subselect: leave it to a backfill"
    : null
}

/** Functions that wait, change settings, or run statements that they get as text. */
const hiding = /^(pg_|set_config$|dblink|query_to_|table_to_|schema_to_|database_to_|cursor_to_|lo_)/

/** A function that a statement calls, and behind which statements of any length may be; null: none. */
export const hiddenCall = (node: Node, made: ReadonlySet<string>): string | null => {
  const names = below<FuncCall>(node, "FuncCall").map(({ funcname = [] }) => {
    const [last] = funcname.slice(-1)
    return last !== undefined && "String" in last ? last.String.sval ?? "" : ""
  })
  return names.find((name) => hiding.test(name) || made.has(name)) ?? null
}
