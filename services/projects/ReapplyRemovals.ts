/**
 * Withdraws projects and removes owners again, during recovery, as was decided in the lost time. As if the directory
 * had sent it, except that the directory cannot undo it until it has sent the same.
 */
import { Effect } from "effect"
import type { PersonId, ProjectId } from "../../schemas/BrandedIds.ts"
import { EventLog } from "../lifecycle/EventLog.ts"
import { Audit } from "../platform/observability/Audit.ts"
import { Database } from "../platform/database/Database.ts"
import { owners } from "./Owners.ts"
import { endings } from "./Projects/WithdrawCascade.ts"
import { projectRows } from "./Projects/Rows.ts"

export const removals = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  const falling = yield* endings
  const eventLog = yield* EventLog
  const projects = projectRows(sql)
  const { appendMissing: appendOwnerEvents } = owners(sql, eventLog)

  const recorded = (action: string, projectId: ProjectId, version: number) =>
    audit.append({
      action,
      actor: "system",
      subject: `project:${projectId}`,
      outcome: "done",
      decision: true,
      details: { version },
    })

  /** Withdraws a project in the current transaction; returns whether it was not withdrawn before. */
  const withdraw = Effect.fn("Removals.withdraw")(function* (projectId: ProjectId, reason: string) {
    yield* projects.turn(projectId)
    const project = yield* projects.lock(projectId)
    if (project === null || project.state === "withdrawn") return false
    const withdrawn = yield* projects.change(project, { state: "withdrawn" })
    const ending = {
      projectId,
      institutionId: project.institution_id,
      clientId: project.client_id,
      personId: null,
      reason,
    }
    yield* falling.end(ending)
    yield* eventLog.append(
      {
        kind: "project-withdrawn",
        projectId,
        institutionId: project.institution_id,
        initiatedBy: "system",
        payload: { project: { version: withdrawn.revision } },
      },
      ...(yield* falling.sessions(ending)),
    )
    yield* recorded("project.withdrawn", projectId, withdrawn.revision)
    return true
  })

  /** Removes an owner, even the last one, in the current transaction; returns whether the person was one. */
  const disown = Effect.fn("Removals.disown")(function* (projectId: ProjectId, personId: PersonId) {
    yield* projects.turn(projectId)
    const project = yield* projects.lock(projectId)
    if (project === null) return false
    const owned = yield* sql<{ id: string }>`
      update project_owners set active = false, active_decided = true, revision = revision + 1, made_by = null,
        approved_by = '{}'
      where project_id = ${projectId} and person_id = ${personId} and active and not removed returning id`
    if (owned.length === 0) return false
    yield* appendOwnerEvents("id", owned.map(({ id }) => id))
    yield* recorded("project.owner-changed", projectId, yield* projects.touch(projectId))
    return true
  })

  return { withdraw, disown }
})
