/** Withdraws a project, with everything that ends with it. */
import { Effect } from "effect"
import type { InstitutionId, PersonId, ProjectId } from "../../../schemas/BrandedIds.ts"
import type * as Wire from "../../../schemas/identity/Project.ts"
import { NotFound } from "../../../schemas/problems/HttpProblems.ts"
import { InvalidState, VersionConflict } from "../../../schemas/problems/IdentityProblems.ts"
import { EventLog } from "../../lifecycle/EventLog.ts"
import { administers, Roles } from "../../people/Roles.ts"
import { Database } from "../../platform/database/Database.ts"
import { projectRecords } from "./ProjectRecords.ts"
import { withdrawnOf } from "./ProjectViews.ts"
import { liveStates, type ProjectRow, projectRows } from "./Rows.ts"
import { endings } from "./WithdrawCascade.ts"

/** For a locked project. */
export const withdrawLocked = Effect.gen(function* () {
  const { sql } = yield* Database
  const cascade = yield* endings
  const eventLog = yield* EventLog
  const record = yield* projectRecords
  const projects = projectRows(sql)

  return Effect.fnUntraced(function* (project: ProjectRow, personId: PersonId, reason: string) {
    const withdrawn = yield* projects.change(project, { state: "withdrawn" })
    const ending = {
      projectId: project.id,
      institutionId: project.institution_id,
      clientId: project.client_id,
      personId,
      reason,
    }
    const jobId = yield* cascade.end(ending)
    const [eventId] = yield* eventLog.append(
      {
        kind: "project-withdrawn",
        projectId: project.id,
        institutionId: project.institution_id,
        initiatedBy: "admin",
        payload: { project: { version: withdrawn.revision } },
      },
      ...(yield* cascade.sessions(ending)),
    )
    yield* record("project.withdrawn", personId, withdrawn, { version: withdrawn.revision, reason })
    return { withdrawn, eventId: eventId!, jobId }
  })
})

export const withdrawProject = Effect.gen(function* () {
  const { sql } = yield* Database
  const roles = yield* Roles
  const withdrawNow = yield* withdrawLocked
  const projects = projectRows(sql)

  return Effect.fn("Projects.withdraw")(
    function* (
      { expected_version, institutionId, personId, projectId, reason }: Wire.Transition & {
        readonly personId: PersonId
        readonly projectId: ProjectId
        readonly institutionId: InstitutionId
      },
    ) {
      yield* projects.turn(projectId)
      const standing = yield* roles.toProject(personId, projectId)
      if (standing.institutionId !== institutionId) return yield* new NotFound()
      if (!standing.owner) yield* administers(standing)
      const project = yield* projects.lock(projectId)
      if (project === null) return yield* new NotFound()
      if (project.state === "withdrawn") return yield* new InvalidState({ state: project.state, allowed: liveStates })
      if (project.revision !== expected_version) {
        return yield* new VersionConflict({ current_version: project.revision })
      }
      const { eventId, jobId, withdrawn } = yield* withdrawNow(project, personId, reason)
      return withdrawnOf(withdrawn, { reason, eventId, jobId })
    },
  )
})
