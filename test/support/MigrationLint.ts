/**
 * Refuses statements of migrations that rewrite a table, hold a lock on it for longer than a moment, or take away what the
 * program before still uses, by PostgreSQL's own parser. What a migration does to a table that it made itself is free.
 * A kind of statement that is not known here to be short is refused.
 */
import type { AlterTableCmd, ColumnDef, Constraint, DropStmt, Node } from "libpg-query"
import { parse } from "libpg-query"
import { hiddenCall, nameOf, readFault } from "./MigrationReads.ts"

interface State {
  /** Tables that this migration made. */
  readonly made: Set<string>
  /** Functions that this migration made. */
  readonly functions: Set<string>
  /** Indexes that are known not to be unique. */
  readonly plain: Set<string>
  /** Whether it has raised `schema_meta.min_app`, so that older programs are fenced. */
  contracts: boolean
}

const contraction = "raise schema_meta.min_app in a step before, a release after the last use"

const ofConstraint = (constraint: Constraint): string | null => {
  switch (constraint.contype) {
    case "CONSTR_CHECK":
    case "CONSTR_FOREIGN":
      return constraint.skip_validation ? null : "reads the whole table under a lock: add it NOT VALID, then VALIDATE"
    case "CONSTR_PRIMARY":
    case "CONSTR_UNIQUE":
      return constraint.indexname === undefined
        ? "builds an index under a lock: CREATE UNIQUE INDEX CONCURRENTLY, then USING INDEX"
        : null
    case "CONSTR_NOTNULL":
      return constraint.skip_validation ? null : "reads the whole table under a lock: NOT VALID, then VALIDATE"
    case "CONSTR_EXCLUSION":
      return "builds an index under a lock, and cannot be built beside writes: make a new table"
    default:
      return null
  }
}

/** Functions whose value is one for the whole statement: such a default is stored once, and rewrites nothing. */
const stable = new Set(["now"])

const isConstant = (node: Node | undefined): boolean => {
  if (node === undefined || "A_Const" in node || "SQLValueFunction" in node) return true
  if ("TypeCast" in node) return isConstant(node.TypeCast.arg)
  if (!("FuncCall" in node)) return false
  const [name] = (node.FuncCall.funcname ?? []).slice(-1)
  return name !== undefined && "String" in name && stable.has(name.String.sval ?? "")
}

const ofColumn = (column: ColumnDef): string | null => {
  const constraints = (column.constraints ?? []).flatMap((node) => "Constraint" in node ? [node.Constraint] : [])
  const given = constraints.find(({ contype }) => contype === "CONSTR_DEFAULT")
  const types = (column.typeName?.names ?? []).flatMap((node) => "String" in node ? [node.String.sval ?? ""] : [])
  if (
    types.some((type) => /serial/.test(type)) || constraints.some((c) => /GENERATED|IDENTITY/.test(c.contype ?? ""))
  ) {
    return "rewrites the table: add the column empty, and fill it by a backfill"
  }
  if (given !== undefined && !isConstant(given.raw_expr)) return "rewrites the table for a default that is no constant"
  if (given === undefined && constraints.some(({ contype }) => contype === "CONSTR_NOTNULL")) {
    return "fails where there are rows: NOT NULL needs a default"
  }
  // A default that is a constant is never null: nothing is read for it.
  const rest = constraints.filter(({ contype }) => contype !== "CONSTR_NOTNULL").map(ofConstraint)
    .find((fault) => fault !== null)
  return rest === undefined ? null : `${rest} (as a statement of its own)`
}

/** Commands that change the catalogue alone. */
const brief = new Set([
  "AT_DropNotNull",
  "AT_ReplicaIdentity",
  "AT_ResetOptions",
  "AT_ResetRelOptions",
  "AT_SetCompression",
  "AT_SetOptions",
  "AT_SetRelOptions",
  "AT_SetStatistics",
  "AT_SetStorage",
  "AT_ValidateConstraint",
])

/** By PostgreSQL's names and ours: a check that is gone refuses the program before nothing. */
const isCheck = (name: string | undefined) => name?.endsWith("_check") === true

const ofAlter = ({ def, name, subtype }: AlterTableCmd, state: State): string | null => {
  switch (subtype) {
    case "AT_ColumnDefault":
      return def !== undefined || state.contracts ? null : `takes what the program before leaves out: ${contraction}`
    case "AT_DropConstraint":
      return isCheck(name) || state.contracts
        ? null
        : `takes what ON CONFLICT of the program before names: ${contraction}`
    case "AT_AddColumn":
      return def !== undefined && "ColumnDef" in def ? ofColumn(def.ColumnDef) : null
    case "AT_AddConstraint":
      return def !== undefined && "Constraint" in def ? ofConstraint(def.Constraint) : null
    case "AT_AlterColumnType":
      return "rewrites the table: add a column, write both, read the new one a release later"
    case "AT_SetNotNull":
      return "reads the whole table under a lock: add CHECK (… IS NOT NULL) NOT VALID, and VALIDATE"
    case "AT_DropColumn":
      return state.contracts ? null : `takes a column from the program before: ${contraction}`
    case "AT_SetLogged":
    case "AT_SetUnLogged":
    case "AT_SetTableSpace":
    case "AT_SetAccessMethod":
    case "AT_SetExpression":
    case "AT_AddIdentity":
      return "rewrites the table"
    case "AT_AttachPartition":
      return "reads the whole partition under a lock: the program makes its partitions (RangePartitions)"
    default:
      return brief.has(subtype ?? "") ? null : "is not known to this law to be short"
  }
}

/** A VALIDATE beside another command reads the table under the lock of that one. */
const ofAlters = (cmds: ReadonlyArray<AlterTableCmd>, state: State): string | null => {
  if (cmds.length > 1 && cmds.some(({ subtype }) => subtype === "AT_ValidateConstraint")) {
    return "reads the whole table under a lock: VALIDATE as a statement of its own"
  }
  return cmds.map((cmd) => ofAlter(cmd, state)).find((fault) => fault !== null) ?? null
}

const isMinApp = (node: Node) => "UpdateStmt" in node && nameOf(node.UpdateStmt.relation) === "schema_meta"

const rewriting: Readonly<Record<string, string>> = {
  VacuumStmt: "runs outside of migrations",
  ClusterStmt: "rewrites the table",
  LockStmt: "locks a table: a statement takes what it needs",
  TruncateStmt: "takes away rows that the program before may need",
  RefreshMatViewStmt: "holds a lock for as long as it reads",
  DeleteStmt: "runs for as long as there are rows: leave it to a backfill",
  MergeStmt: "runs for as long as there are rows: leave it to a backfill",
  AlterTableMoveAllStmt: "rewrites the tables",
  CopyStmt: "reads or writes for as long as there are rows: leave it to a backfill",
  CallStmt: "hides its statements from this law",
  DoStmt: "hides its statements from this law",
  ExecuteStmt: "hides its statements from this law",
  ExplainStmt: "hides its statements from this law",
  PrepareStmt: "hides its statements from this law",
  TransactionStmt: "ends the step's transaction",
  VariableSetStmt: "changes the limits of locks and statements",
}

/** Statements that change the catalogue alone, and those of which more is asked below. */
const known = new Set([
  "AlterEnumStmt",
  "AlterTableStmt",
  "CommentStmt",
  "CreateEnumStmt",
  "CreateFunctionStmt",
  "CreateSeqStmt",
  "CreateStmt",
  "CreateTrigStmt",
  "DropStmt",
  "GrantStmt",
  "IndexStmt",
  "InsertStmt",
  "SelectStmt",
  "UpdateStmt",
  "ViewStmt",
])

/** What a statement reads of tables, and what it changes in a WITH. */
const ofRows = (node: Node, state: State): string | null => {
  if ("CreateTableAsStmt" in node) return "reads all of what it copies in one statement: leave it to a backfill"
  if (!("InsertStmt" in node || "SelectStmt" in node || "UpdateStmt" in node)) return null
  const [statement] = Object.values(node) as [{ readonly withClause?: { readonly ctes?: ReadonlyArray<Node> } }]
  for (const cte of statement.withClause?.ctes ?? []) {
    const query = "CommonTableExpr" in cte ? cte.CommonTableExpr.ctequery : undefined
    const fault = query === undefined || "SelectStmt" in query ? null : faultOf(query, state)
    if (fault !== null) return fault
  }
  const hidden = hiddenCall(node, state.functions)
  if (hidden !== null) return `hides what ${hidden}() does from this law`
  if ("SelectStmt" in node && node.SelectStmt.intoClause !== undefined) {
    return "reads all of what it copies in one statement: leave it to a backfill"
  }
  return readFault("InsertStmt" in node ? node.InsertStmt : statement, state.made)
}

const ofPartition = (node: Node, state: State): string | null =>
  "CreateStmt" in node && node.CreateStmt.partbound !== undefined &&
    (node.CreateStmt.inhRelations ?? []).some((of) => "RangeVar" in of && !state.made.has(nameOf(of.RangeVar)))
    ? "reads the default partition under a lock: the program makes its partitions (RangePartitions)"
    : null

const ofIndex = (node: Node, state: State): string | null => {
  if (!("IndexStmt" in node)) return null
  const { concurrent, if_not_exists, idxname, relation } = node.IndexStmt
  if (state.made.has(nameOf(relation))) return null
  if (!concurrent) return "blocks every write of the table: CONCURRENTLY, in a migration of steps"
  return if_not_exists && idxname !== undefined ? null : "is built again after a kill: give it a name and IF NOT EXISTS"
}

/** The last part of each name that a DROP names. */
const droppedNames = (objects: ReadonlyArray<Node>) =>
  objects.map((object) => {
    const [last] = ("List" in object ? object.List.items ?? [] : [object]).slice(-1)
    return last !== undefined && "String" in last ? last.String.sval ?? "" : ""
  })

/** A unique index keeps rows apart, and ON CONFLICT of the program before names its columns: without it that fails. */
const ofDroppedIndex = ({ concurrent, missing_ok, objects }: DropStmt, state: State): string | null => {
  if (!concurrent || !missing_ok) return "waits for every query of the table: DROP INDEX CONCURRENTLY IF EXISTS"
  return state.contracts || droppedNames(objects ?? []).every((name) => state.plain.has(name))
    ? null
    : `is not known to be of a plain index, and ON CONFLICT of the program before names unique ones: ${contraction}`
}

const ofDrop = (node: Node, state: State): string | null => {
  if (!("DropStmt" in node)) return null
  if (node.DropStmt.removeType === "OBJECT_INDEX") return ofDroppedIndex(node.DropStmt, state)
  return state.contracts ? null : `takes it from the program before: ${contraction}`
}

const faultOf = (node: Node, state: State): string | null => {
  const [kind] = Object.keys(node)
  if (kind !== undefined && kind in rewriting) return rewriting[kind]!
  if ("RenameStmt" in node) return "takes the old name from the program before: add the new one beside it"
  if ("ReindexStmt" in node) return "blocks every write of the table: make a new index CONCURRENTLY"
  if ("UpdateStmt" in node && !isMinApp(node)) return "runs for as long as there are rows: leave it to a backfill"
  if ("AlterTableStmt" in node && !state.made.has(nameOf(node.AlterTableStmt.relation))) {
    const cmds = (node.AlterTableStmt.cmds ?? []).flatMap((cmd) => "AlterTableCmd" in cmd ? [cmd.AlterTableCmd] : [])
    const fault = ofAlters(cmds, state)
    if (fault !== null) return fault
  }
  const fault = ofRows(node, state) ?? ofPartition(node, state) ?? ofIndex(node, state) ?? ofDrop(node, state)
  return fault ?? (known.has(kind ?? "") ? null : "is not known to this law to be short")
}

const noted = (node: Node, state: State) => {
  if (isMinApp(node)) state.contracts = true
  // Where the table may have been there, the migration may not have made it.
  if ("CreateStmt" in node && !node.CreateStmt.if_not_exists) state.made.add(nameOf(node.CreateStmt.relation))
  if ("IndexStmt" in node) {
    const { idxname = "", unique } = node.IndexStmt
    if (unique) state.plain.delete(idxname)
    else state.plain.add(idxname)
  }
  if ("CreateFunctionStmt" in node) {
    const [last] = (node.CreateFunctionStmt.funcname ?? []).slice(-1)
    if (last !== undefined && "String" in last) state.functions.add(last.String.sval ?? "")
  }
}

/** The indexes that these texts of migrations, in their order, make and that are not unique. */
export const plainIndexes = (texts: ReadonlyArray<string>): ReadonlySet<string> => {
  const plain = new Set<string>()
  const making = /\bcreate\s+(unique\s+)?index\s+(?:concurrently\s+)?(?:if\s+not\s+exists\s+)?(\w+)/gi
  for (const [, unique, name] of texts.flatMap((text) => [...text.matchAll(making)])) {
    if (unique === undefined) plain.add(name!)
    else plain.delete(name!)
  }
  return plain
}

/**
 * The faults of a migration's statements, in their order; empty where it has none. `plain`: the indexes of the schema before
 * that are not unique.
 */
export const lintMigration = async (
  statements: ReadonlyArray<string>,
  plain: ReadonlySet<string> = new Set(),
): Promise<ReadonlyArray<string>> => {
  const state: State = { made: new Set(), functions: new Set(), plain: new Set(plain), contracts: false }
  const faults: Array<string> = []
  for (const statement of statements) {
    const { stmts = [] } = await parse(statement)
    if (stmts.length !== 1) faults.push(`${statement}: one statement a step`)
    for (const { stmt } of stmts) {
      if (stmt === undefined) continue
      const fault = faultOf(stmt, state)
      if (fault !== null) faults.push(`${statement}: ${fault}`)
      noted(stmt, state)
    }
  }
  return faults
}
