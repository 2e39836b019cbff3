/**
 * Appends the events about owners of a project (`project-owner-changed`). `project_owners.told` is the state of the
 * last event, so every change of a row calls `appendMissing` in the same transaction; a row whose project or person is not
 * known yet waits until these arrive.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { InstitutionId, PersonId, ProjectId } from "../../schemas/BrandedIds.ts"
import type { EventLog, NewLifecycleEvent } from "../lifecycle/EventLog.ts"
import type { Person } from "../people/PersonAudience.ts"

interface OwnerEvent extends Pick<Person, "id" | "issuer" | "subject"> {
  readonly ownerId: string
  readonly projectId: ProjectId
  readonly institutionId: InstitutionId
  readonly active: boolean
  readonly madeBy: PersonId | null
}

const eventOf = ({ active, id, institutionId, issuer, madeBy, projectId, subject }: OwnerEvent): NewLifecycleEvent => ({
  kind: "project-owner-changed",
  projectId,
  institutionId,
  payload: { owner: { person_id: id, active, user: { format: "iss_sub", iss: issuer, sub: subject } } },
  initiatedBy: madeBy === null ? "system" : "admin",
})

export const owners = (sql: PgClient.PgClient, eventLog: EventLog["Service"]) => {
  /** Appends the missing events of rows of `project_owners`, selected by their ids, projects or persons. */
  const appendMissing = Effect.fnUntraced(
    function* (column: "id" | "project_id" | "person_id", ids: ReadonlyArray<string>) {
      const missing = yield* sql<OwnerEvent>`
      select o.id as "ownerId", o.project_id as "projectId", j.institution_id as "institutionId",
        o.active and not o.removed as active, o.made_by as "madeBy", p.id, p.issuer, p.subject
      from project_owners o
      join projects j on j.id = o.project_id and j.institution_id is not null
      join people p on p.id = o.person_id and p.issuer is not null
      where ${sql(`o.${column}`)} = any(${[...ids]}::text[]) and (o.active and not o.removed) <> o.told
      order by o.id collate "C" for update of o`
      if (missing.length === 0) return
      yield* eventLog.append(...missing.map(eventOf))
      yield* sql`update project_owners set told = not told where id = any(${
        missing.map(({ ownerId }) => ownerId)
      }::text[])`
    },
  )

  /** Appends the event that a person no longer owns a project, because the row moved to another project or person. */
  const appendLeft = Effect.fnUntraced(function* (ownerId: string, projectId: ProjectId, personId: PersonId) {
    const [left] = yield* sql<OwnerEvent>`
      select o.id as "ownerId", j.id as "projectId", j.institution_id as "institutionId", false as active,
        o.made_by as "madeBy", p.id, p.issuer, p.subject
      from project_owners o join projects j on j.id = ${projectId} join people p on p.id = ${personId}
      where o.id = ${ownerId} and o.told`
    if (left === undefined) return
    yield* eventLog.append(eventOf(left))
    yield* sql`update project_owners set told = false where id = ${ownerId}`
  })

  return { appendMissing, appendLeft }
}
