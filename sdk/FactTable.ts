/**
 * The rows that facts are: where they stand, and where those of a snapshot that comes in parts are laid by until all of
 * them are there.
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

const takesPlace = `on conflict (project_id, about, id) do update set ${
  columns.slice(3).map((name) => `${name} = excluded.${name}`)
}`

/** Puts facts in the place of what stood under their ids. */
export function* put(projectId: string, facts: ReadonlyArray<Fact>): Work<void> {
  yield* insert("bailiwick_facts", columns, facts.map((fact) => valuesOf(projectId, fact)), takesPlace)
}

/** Does what changes say, no two of them of one fact. */
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

/** Lays facts of one snapshot by, and gives how many there were; nobody reads them before `swapStaged`. */
export function* stage(projectId: string, snapshot: Checkpoint, facts: ReadonlyArray<Fact>): Work<number> {
  const rows = facts.map((fact) => [snapshot.jti, ...valuesOf(projectId, fact)])
  const after = "on conflict do nothing returning about"
  return (yield* insert("bailiwick_staged", ["snapshot", ...columns], rows, after)).length
}

/** Forgets what was laid by, of whatever snapshot: of one that was not finished. */
export function* unstage(projectId: string): Work<void> {
  yield* ask(`delete from bailiwick_staged where project_id = $1`, projectId)
}

/** Puts what was laid by of a snapshot, so many facts, where facts stand. Throws Gap where it is not all there. */
export function* fillStaged(projectId: string, { jti }: Checkpoint, count: number): Work<void> {
  const of = `from bailiwick_staged where project_id = $1 and snapshot = $2`
  const [laid] = yield* ask(`select count(*) as n ${of}`, projectId, jti)
  if (Number(laid?.["n"]) !== count) throw new Gap("somebody else began another snapshot meanwhile")
  yield* ask(`insert into bailiwick_facts (${columns}) select ${columns} ${of}`, projectId, jti)
  yield* unstage(projectId)
}
