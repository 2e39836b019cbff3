/** Makes a person an owner of a project, or ends that; takes effect at once. */
import { Effect } from "effect"
import type { PersonId, ProjectId } from "../../../schemas/BrandedIds.ts"
import type * as Wire from "../../../schemas/identity/Project.ts"
import { NotFound } from "../../../schemas/problems/HttpProblems.ts"
import { InvalidState, LastOwner } from "../../../schemas/problems/IdentityProblems.ts"
import { stamp } from "../../requests/PolicyReviews.ts"
import { EventLog } from "../../lifecycle/EventLog.ts"
import { persons } from "../../people/PersonAudience.ts"
import { administers, Roles } from "../../people/Roles.ts"
import { Database } from "../../platform/database/Database.ts"
import { mustBeOpen } from "../../platform/database/Installation.ts"
import { owners } from "../Owners.ts"
import { ownerNotActive } from "../../access/ProjectRefusals.ts"
import { ownerRows } from "./OwnerRows.ts"
import { projectRecords } from "./ProjectRecords.ts"
import { liveStates, projectRows } from "./Rows.ts"

export const changeOwner = Effect.gen(function* () {
  const { sql } = yield* Database
  const roles = yield* Roles
  const record = yield* projectRecords
  const people = persons(sql)
  const ownership = ownerRows(sql)
  const projects = projectRows(sql)
  const { appendMissing: appendOwnerEvents } = owners(sql, yield* EventLog)

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

  return Effect.fn("Projects.changeOwner")(
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
      if (project.state === "withdrawn") return yield* new InvalidState({ state: project.state, allowed: liveStates })
      const list = yield* ownership.list(projectId)
      const is = list.some((owner) => owner.active && owner.person_id === about.id)
      if (active && (about.status !== "active" || about.canonical !== about.id)) return yield* ownerNotActive(person_id)
      if (is === active) return yield* ownersOf(projectId, project.revision)
      if (active) yield* mustBeOpen(sql)
      if (!active && !list.some(({ effective, person_id }) => effective && person_id !== about.id)) {
        return yield* new LastOwner({
          detail:
            `Person ${about.id} is the last active owner of project ${projectId}: make another person an owner first.`,
        })
      }
      yield* appendOwnerEvents("id", [yield* ownership.set(projectId, about.id, active, personId)])
      const version = yield* projects.touch(projectId)
      yield* record("project.owner-changed", personId, project, { version, person: about.id, active, reason })
      return yield* ownersOf(projectId, version)
    },
  )
})
