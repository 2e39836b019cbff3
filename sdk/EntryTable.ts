/**
 * The rows of the state: the current entries (`bailiwick_facts`, a name that products query), and those of a snapshot in
 * parts until all of its parts have arrived (`bailiwick_staged`).
 */
import { type Change, nameOf, otherOf, type StateEntry } from "./EventProjection.ts"
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
  { group, id, value }: StateEntry,
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

/** Inserts entries, replacing those with the same ids. */
export function* put(projectId: string, entries: ReadonlyArray<StateEntry>): Work<void> {
  yield* insert("bailiwick_facts", columns, entries.map((entry) => valuesOf(projectId, entry)), orReplace)
}

/** Writes changes, at most one per entry. */
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

/** Stages entries of a snapshot and returns how many were new. They are not read before `swapStaged`. */
export function* stage(projectId: string, snapshot: Checkpoint, entries: ReadonlyArray<StateEntry>): Work<number> {
  const rows = entries.map((entry) => [snapshot.jti, ...valuesOf(projectId, entry)])
  const after = "on conflict do nothing returning about"
  return (yield* insert("bailiwick_staged", ["snapshot", ...columns], rows, after)).length
}

/** Deletes the staged entries of any unfinished snapshot. */
export function* unstage(projectId: string): Work<void> {
  yield* ask(`delete from bailiwick_staged where project_id = $1`, projectId)
}

/** Moves the staged entries of a snapshot to the current ones. Throws Gap if there are not `count` of them. */
export function* fillStaged(projectId: string, { jti }: Checkpoint, count: number): Work<void> {
  const of = `from bailiwick_staged where project_id = $1 and snapshot = $2`
  const [staged] = yield* ask(`select count(*) as n ${of}`, projectId, jti)
  if (Number(staged?.["n"]) !== count) throw new Gap("another process has begun another snapshot")
  yield* ask(`insert into bailiwick_facts (${columns}) select ${columns} ${of}`, projectId, jti)
  yield* unstage(projectId)
}
