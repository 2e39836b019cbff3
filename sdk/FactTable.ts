/**
 * The rows of facts: the current ones (`bailiwick_facts`), and those of a snapshot in parts until all of its parts have
 * arrived (`bailiwick_staged`).
 */
import { type Change, type Fact, nameOf, otherOf } from "./EventProjection.ts"
import { member } from "./Canonical.ts"
import { Gap } from "./Refusal.ts"
import { ask, insert, type Value, type Work } from "./Store.ts"
import type { Checkpoint } from "./Verify.ts"

const columns = [
  "project_id",
  "about",
  "id",
  "issuer",
  "subject",
  "other_issuer",
  "other_subject",
  "linked",
  "value",
]

const valuesOf = (
  projectId: string,
  { group, id, value }: Fact,
): ReadonlyArray<Value> => {
  const user = nameOf(member(value, "user"))
  const other = group === "identities" ? otherOf(value) : null
  return [
    ...[projectId, group, id, user?.issuer ?? null, user?.subject ?? null],
    ...[
      other?.name.issuer ?? null,
      other?.name.subject ?? null,
      other?.linked === true ? 1 : 0,
    ],
    JSON.stringify(value),
  ]
}

const orReplace = `on conflict (project_id, about, id) do update set ${
  columns.slice(3).map((name) => `${name} = excluded.${name}`)
}`

/** Inserts facts, replacing those with the same ids. */
export function* put(projectId: string, facts: ReadonlyArray<Fact>): Work<void> {
  yield* insert("bailiwick_facts", columns, facts.map((fact) => valuesOf(projectId, fact)), orReplace)
}

/** Writes changes, at most one per fact. */
export function* change(projectId: string, changes: ReadonlyArray<Change>): Work<void> {
  yield* put(projectId, changes.flatMap(({ group, id, value }) => value === null ? [] : [{ group, id, value }]))
  for (const { group, id } of changes.filter(({ value }) => value === null)) {
    yield* ask(
      `delete from bailiwick_facts where project_id = $1 and about = $2 and id = $3`,
      projectId,
      group,
      id,
    )
  }
}

/** Stages facts of a snapshot and returns how many were new. They are not read before `swapStaged`. */
export function* stage(projectId: string, snapshot: Checkpoint, facts: ReadonlyArray<Fact>): Work<number> {
  const rows = facts.map((fact) => [snapshot.jti, ...valuesOf(projectId, fact)])
  const after = "on conflict do nothing returning about"
  return (yield* insert("bailiwick_staged", ["snapshot", ...columns], rows, after)).length
}

/** Deletes the staged facts of any unfinished snapshot. */
export function* unstage(projectId: string): Work<void> {
  yield* ask(`delete from bailiwick_staged where project_id = $1`, projectId)
}

/** Moves the staged facts of a snapshot to the current ones. Throws Gap if there are not `count` of them. */
export function* fillStaged(projectId: string, { jti }: Checkpoint, count: number): Work<void> {
  const of = `from bailiwick_staged where project_id = $1 and snapshot = $2`
  const [staged] = yield* ask(`select count(*) as n ${of}`, projectId, jti)
  if (Number(staged?.["n"]) !== count) throw new Gap("another process has begun another snapshot")
  yield* ask(`insert into bailiwick_facts (${columns}) select ${columns} ${of}`, projectId, jti)
  yield* unstage(projectId)
}
