/** Proposes the launch of a project, which an administrator reviews; a newer proposal supersedes the last one. */
import { Effect } from "effect"
import { type PersonId, type ProjectId, RequestId } from "../../../schemas/BrandedIds.ts"
import { isLocal } from "../../../schemas/identity/Addresses.ts"
import type * as Wire from "../../../schemas/identity/Project.ts"
import { InvalidState, LaunchUrlUnverified } from "../../../schemas/problems/IdentityProblems.ts"
import { NotFound } from "../../../schemas/problems/HttpProblems.ts"
import { HTTPValidationError } from "../../../schemas/Validation.ts"
import { PolicyReviews } from "../../requests/PolicyReviews.ts"
import { type RequestRow, requestRows } from "../../requests/RequestRows.ts"
import { owns, Roles } from "../../people/Roles.ts"
import { Database } from "../../platform/database/Database.ts"
import { Ids } from "../../platform/Ids.ts"
import { environmentHeld } from "../../access/ProjectRefusals.ts"
import { launchOf } from "./ProjectViews.ts"
import { closings } from "./CloseRequests.ts"
import { mayLaunchAt } from "./LaunchConditions.ts"
import { projectRecords } from "./ProjectRecords.ts"
import { launchableStates, projectRows } from "./Rows.ts"

export const proposeLaunch = Effect.gen(function* () {
  const { sql } = yield* Database
  const { close } = yield* closings
  const ids = yield* Ids
  const reviews = yield* PolicyReviews
  const roles = yield* Roles
  const record = yield* projectRecords
  const projects = projectRows(sql)
  const requests = requestRows(sql)

  return Effect.fn("Projects.proposeLaunch")(
    function* (
      { launch_url, personId, projectId, reason }: Wire.LaunchCreate & {
        readonly personId: PersonId
        readonly projectId: ProjectId
      },
    ) {
      yield* projects.turn(projectId)
      const standing = yield* roles.toProject(personId, projectId)
      yield* owns(standing)
      const [{ verified_domains } = { verified_domains: [] }] = yield* sql<{ verified_domains: Array<string> }>`
        select verified_domains from institutions where id = ${standing.institutionId} and not removed for share`
      const project = yield* projects.lock(projectId)
      if (project === null) return yield* new NotFound()
      if (project.rollout !== null) return yield* environmentHeld(project.id, project.rollout)
      if (!launchableStates.includes(project.state)) {
        return yield* new InvalidState({ state: project.state, allowed: launchableStates })
      }
      if (isLocal(launch_url) && project.environment === "production") {
        return yield* HTTPValidationError.at(
          ["body", "launch_url"],
          "value_error",
          "Value error, http://localhost is for staging only",
        )
      }
      if (!mayLaunchAt(launch_url, project, verified_domains)) {
        const [first, ...others] = verified_domains
        return yield* new LaunchUrlUnverified({
          detail: first === undefined
            ? "The institution has no verified domain: an operator has to verify one first."
            : `Launch at, or under, one of the verified domains of the institution: ${[first, ...others].join(", ")}.`,
        })
      }
      yield* close(projectId, "launches", personId)
      const proposed = yield* projects.change(project, { state: "launch_proposed" })
      const request: RequestRow = (yield* requests.insert({
        id: RequestId.make(yield* ids.next),
        kind: "launch",
        state: "proposed",
        author: personId,
        institutionId: project.institution_id,
        projectId,
        fields: { launch_url, project_version: proposed.revision, preview_digest: project.preview_digest },
        reason,
      }))!
      const review = yield* reviews.open(request, ["administrator"])
      yield* record("project.launch-proposed", personId, project)
      return launchOf(request, review)
    },
  )
})
