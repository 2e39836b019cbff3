/** An administrator who is independent of the proposer approves a service grant. */
import { Clock, Effect } from "effect"
import {
  type InsufficientUserAuthentication,
  InvalidState,
  VersionConflict,
} from "../../../schemas/problems/IdentityProblems.ts"
import { administers, Roles } from "../../people/Roles.ts"
import { Database } from "../../platform/database/Database.ts"
import { mustBeOpen } from "../../platform/database/Installation.ts"
import { addNotices } from "../../requests/PersonNotices.ts"
import { environmentHeld } from "../ProjectRefusals.ts"
import type { GrantReads, OnGrant } from "./GrantReads.ts"
import { mustFit, stateOf } from "./GrantRows.ts"
import { eventAppender, recording } from "./Records.ts"

export interface GrantApproval extends OnGrant {
  readonly expectedVersion: number
  readonly stepUp: Effect.Effect<void, InsufficientUserAuthentication>
}

export const approving = Effect.fnUntraced(function* (reads: GrantReads) {
  const { sql } = yield* Database
  const recorded = yield* recording
  const roles = yield* Roles
  const appendEvent = yield* eventAppender

  return Effect.fn("ServiceGrants.approve")(function* (approval: GrantApproval) {
    const { expectedVersion, personId, projectId, reason, stepUp } = approval
    const standing = yield* roles.toProject(personId, projectId, "update")
    const project = yield* reads.projectOf(projectId)
    const grant = yield* reads.lock(approval)
    yield* administers(standing)
    // The proposer acted as an owner of the project.
    if (!(yield* roles.independent(personId, grant.proposed_by, projectId))) {
      return yield* yield* roles.fourEyes(personId, grant.proposed_by, projectId)
    }
    if (project.rollout !== null) return yield* environmentHeld(projectId, project.rollout)
    yield* mustBeOpen(sql)
    yield* stepUp
    const now = new Date(yield* Clock.currentTimeMillis)
    const state = project.state === "withdrawn" ? "withdrawn" : stateOf(grant, now.getTime())
    if (state !== "proposed") return yield* new InvalidState({ state, allowed: ["proposed"] })
    if (grant.revision !== expectedVersion) return yield* new VersionConflict({ current_version: grant.revision })
    yield* mustFit(project, grant.environment)
    const eventId = yield* appendEvent("service-grant-approved", grant, project.institution_id, personId)
    yield* sql`
      update service_grants set state = 'approved', revision = revision + 1, approved_by = ${personId},
        approved_at = ${now}, approval_reason = ${reason}, approval_event_id = ${eventId}::uuid
      where id = ${grant.id}::uuid and revision = ${grant.revision}`
    yield* recorded("approve", grant, personId)
    yield* addNotices(sql, { personId: grant.proposed_by, kind: "grant.approved", subjectId: grant.id })
    return yield* reads.view(grant.id)
  })
})
