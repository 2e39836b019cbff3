/** The changes that take effect at once: withdrawals, changes of owners, and the end of declined proposals. */
import { Effect } from "effect"
import type { InstitutionId, PersonId, ProjectId } from "../../../schemas/BrandedIds.ts"
import type * as Wire from "../../../schemas/identity/Project.ts"
import { NotFound } from "../../../schemas/problems/HttpProblems.ts"
import { InvalidState, LastOwner, VersionConflict } from "../../../schemas/problems/IdentityProblems.ts"
import { stamp } from "../../requests/PolicyReviews.ts"
import { type RequestRow, requestRows } from "../../requests/RequestRows.ts"
import { EventLog } from "../../lifecycle/EventLog.ts"
import { persons } from "../../people/PersonAudience.ts"
import { administers, Roles } from "../../people/Roles.ts"
import { Audit } from "../../platform/observability/Audit.ts"
import { Database } from "../../platform/database/Database.ts"
import { mustBeOpen } from "../../platform/database/Installation.ts"
import { Timers } from "../../platform/database/Timers.ts"
import { owners } from "../Owners.ts"
import { ownerNotActive } from "../../access/ProjectRefusals.ts"
import { withdrawnOf } from "./ProjectViews.ts"
import { endings } from "./WithdrawCascade.ts"
import { ownerRows } from "./OwnerRows.ts"
import { type ProjectRow, projectRows } from "./Rows.ts"

const live: ReadonlyArray<string> = ["registered", "launch_proposed", "launched", "held"]

export const changes = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  const falling = yield* endings
  const positions = yield* EventLog
  const roles = yield* Roles
  const timers = yield* Timers
  const people = persons(sql)
  const ownership = ownerRows(sql)
  const projects = projectRows(sql)
  const requests = requestRows(sql)
  const { settle: tellOwners } = owners(sql, positions)

  // Only the audit keeps the reason: no row has a column for it.
  const recorded = (
    action: string,
    personId: PersonId,
    project: ProjectRow,
    more: Readonly<Record<string, string | boolean>>,
  ) =>
    audit.append({
      action,
      actor: `person:${personId}`,
      subject: `project:${project.id}`,
      outcome: "done",
      details: { institution: project.institution_id, version: project.revision, ...more },
    })

  /** Withdraws a locked project, with everything that ends with it. */
  const end = Effect.fnUntraced(function* (project: ProjectRow, personId: PersonId, reason: string) {
    const withdrawn = yield* projects.change(project, { state: "withdrawn" })
    const ending = {
      projectId: project.id,
      institutionId: project.institution_id,
      clientId: project.client_id,
      personId,
      reason,
    }
    const jobId = yield* falling.end(ending)
    const [eventId] = yield* positions.append(
      {
        kind: "project-withdrawn",
        projectId: project.id,
        institutionId: project.institution_id,
        initiatedBy: "admin",
        payload: { project: { version: withdrawn.revision } },
      },
      ...(yield* falling.sessions(ending)),
    )
    yield* recorded("project.withdrawn", personId, withdrawn, { reason })
    return { withdrawn, eventId: eventId!, jobId }
  })

  const withdraw = Effect.fn("Projects.withdraw")(
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
      if (project.state === "withdrawn") return yield* new InvalidState({ state: project.state, allowed: live })
      if (project.revision !== expected_version) {
        return yield* new VersionConflict({ current_version: project.revision })
      }
      const { eventId, jobId, withdrawn } = yield* end(project, personId, reason)
      return withdrawnOf(withdrawn, { reason, eventId, jobId })
    },
  )

  const ownersOf = Effect.fnUntraced(function* (projectId: ProjectId, version: number) {
    const list = yield* ownership.list(projectId)
    return {
      project_id: projectId,
      version,
      owners: list.map(({ active, person_id, since }) => ({
        person_id,
        active,
        since: since === null ? null : stamp(since),
      })),
    } satisfies Wire.ProjectOwners
  })

  const changeOwner = Effect.fn("Projects.changeOwner")(
    function* (
      { active, person_id, personId, projectId, reason }: Wire.OwnerChange & {
        readonly personId: PersonId
        readonly projectId: ProjectId
      },
    ) {
      yield* projects.turn(projectId)
      const known = yield* people.lock([personId, person_id])
      yield* administers(yield* roles.toProject(personId, projectId))
      const about = known.find(({ id }) => id === person_id)
      const project = yield* projects.lock(projectId)
      if (project === null || about === undefined || about.removed) return yield* new NotFound()
      if (project.state === "withdrawn") return yield* new InvalidState({ state: project.state, allowed: live })
      const list = yield* ownership.list(projectId)
      const is = list.some((owner) => owner.active && owner.person_id === about.id)
      if (active && (about.status !== "active" || about.canonical !== about.id)) return yield* ownerNotActive(person_id)
      if (is === active) return yield* ownersOf(projectId, project.revision)
      if (active) yield* mustBeOpen(sql)
      if (!active && !list.some(({ person_id, standing }) => standing && person_id !== about.id)) {
        return yield* new LastOwner({
          detail:
            `Person ${about.id} is the last active owner of project ${projectId}: make another person an owner first.`,
        })
      }
      yield* tellOwners("id", [yield* ownership.set(projectId, about.id, active, personId)])
      const version = yield* projects.touch(projectId)
      yield* recorded("project.owner-changed", personId, { ...project, revision: version }, {
        person: about.id,
        active,
        reason,
      })
      return yield* ownersOf(projectId, version)
    },
  )

  const decline = Effect.fnUntraced(function* (request: RequestRow, personId: PersonId, reason: string) {
    const project = (yield* projects.lock(request.project_id!))!
    yield* requests.change(request, { state: "declined" })
    yield* timers.set(request.id, [])
    if (request.kind === "website") yield* end(project, personId, reason)
    else if (project.state === "launch_proposed") yield* projects.change(project, { state: "registered" })
    else if (project.held_from === "launch_proposed") {
      yield* projects.change(project, { state: "held", heldReason: project.held_reason, heldFrom: "registered" })
    }
  })

  return { withdraw, changeOwner, decline }
})
