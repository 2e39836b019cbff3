/** Ends service grants: by an owner or an administrator, with a withdrawn project, or during recovery. */
import { Clock, Effect } from "effect"
import type { InstitutionId, PersonId, ProjectId, ServiceGrantId } from "../../../schemas/BrandedIds.ts"
import { isUuid } from "../../../schemas/Wire.ts"
import { administers, Roles } from "../../people/Roles.ts"
import { Database } from "../../platform/database/Database.ts"
import { addNotices } from "../../requests/PersonNotices.ts"
import type { GrantReads, OnGrant } from "./GrantReads.ts"
import type { GrantRow } from "./GrantRows.ts"
import { eventAppender, recording } from "./Records.ts"

export const revoking = Effect.fnUntraced(function* (reads: GrantReads) {
  const { sql } = yield* Database
  const recorded = yield* recording
  const roles = yield* Roles
  const appendEvent = yield* eventAppender

  /** Ends a locked grant; the person is null for the program itself. */
  const close = Effect.fnUntraced(
    function* (grant: GrantRow, institutionId: InstitutionId, personId: PersonId | null, reason: string) {
      const now = new Date(yield* Clock.currentTimeMillis)
      const told = grant.approved_at === null
        ? null
        : yield* appendEvent("service-grant-revoked", grant, institutionId, personId)
      // The column holds the newest decision's event: delivery and acknowledgement are now those of the revocation.
      yield* sql`
        update service_grants set state = 'revoked', revision = revision + 1, revoked_by = ${personId},
          revoked_at = ${now}, revocation_reason = ${reason}, approval_event_id = ${told}::uuid
        where id = ${grant.id}::uuid and revision = ${grant.revision}`
      yield* recorded("revoke", grant, personId)
      // A proposer knows of an own revocation.
      if (personId === grant.proposed_by) return
      yield* addNotices(sql, { personId: grant.proposed_by, kind: "grant.revoked", subjectId: grant.id })
    },
  )

  const revoke = Effect.fn("ServiceGrants.revoke")(function* (revocation: OnGrant) {
    const { personId, projectId, reason } = revocation
    const standing = yield* roles.toProject(personId, projectId, "update")
    const project = yield* reads.projectOf(projectId)
    const grant = yield* reads.lock(revocation)
    if (!standing.owner) yield* administers(standing)
    if (grant.state !== "revoked") yield* close(grant, project.institution_id, personId, reason)
    return yield* reads.view(grant.id)
  })

  const revokeAll = Effect.fn("ServiceGrants.revokeAll")(
    function* (projectId: ProjectId, by: PersonId | null, reason: string) {
      const live = yield* reads.lockLive(sql`g.project_id = ${projectId}`)
      for (const grant of live) yield* close(grant, grant.institution_id, by, reason)
      return live.length
    },
  )

  const end = Effect.fn("ServiceGrants.end")(function* (grantId: ServiceGrantId, reason: string) {
    const [live] = isUuid(grantId) ? yield* reads.lockLive(sql`g.id = ${grantId}::uuid`) : []
    if (live === undefined) return false
    yield* close(live, live.institution_id, null, reason)
    return true
  })

  return { revoke, revokeAll, end }
})
