/** An owner of a project proposes a service grant. */
import { Clock, Effect } from "effect"
import { type PersonId, type ProjectId, ServiceGrantId } from "../../../schemas/BrandedIds.ts"
import type { LifecycleServiceProposal } from "../../../schemas/identity/ServiceGrant.ts"
import { HTTPValidationError } from "../../../schemas/Validation.ts"
import { owns, Roles } from "../../people/Roles.ts"
import { Database } from "../../platform/database/Database.ts"
import { Ids } from "../../platform/Ids.ts"
import { addCall } from "../../requests/SignatureCalls.ts"
import type { GrantReads } from "./GrantReads.ts"
import { after, expiryOf, mustFit, mustStand } from "./GrantRows.ts"
import { recording } from "./Records.ts"

export type GrantProposal = LifecycleServiceProposal & { readonly personId: PersonId; readonly projectId: ProjectId }

/** `issuers`: a proposal without an issuer means the only one. */
export const proposing = Effect.fnUntraced(function* (reads: GrantReads, issuers: ReadonlyArray<string>) {
  const { sql } = yield* Database
  const ids = yield* Ids
  const recorded = yield* recording
  const roles = yield* Roles

  const issuerOf = (asked: string | null | undefined): Effect.Effect<string, HTTPValidationError> => {
    if (asked != null) return Effect.succeed(asked)
    const [only, ...others] = issuers
    return only !== undefined && others.length === 0
      ? Effect.succeed(only)
      : Effect.fail(HTTPValidationError.at(["body", "service_issuer"], "missing", "Field required"))
  }

  /** Made under the project's lock, after the project's last id. */
  const nextId = Effect.fnUntraced(function* (projectId: ProjectId) {
    const [last] = yield* sql<{ id: string }>`
      select id::text as id from service_grants where project_id = ${projectId} order by id desc limit 1`
    return ServiceGrantId.make(after(yield* ids.next, last?.id))
  })

  return Effect.fn("ServiceGrants.propose")(function* ({ personId, projectId, ...proposal }: GrantProposal) {
    yield* owns(yield* roles.toProject(personId, projectId, "update"))
    const now = yield* Clock.currentTimeMillis
    const expires = yield* expiryOf(proposal.expires_at, now)
    const issuer = yield* issuerOf(proposal.service_issuer)
    const project = yield* reads.projectOf(projectId)
    yield* mustStand(project)
    yield* mustFit(project, proposal.environment)
    const id = yield* nextId(projectId)
    yield* sql`
      insert into service_grants (id, project_id, service_id, service_issuer, capabilities, environment, state,
        revision, reason, proposed_by, proposed_at, expires_at)
      values (${id}::uuid, ${projectId}, ${proposal.service_id}, ${issuer},
        ${[...proposal.capabilities]}::text[], ${proposal.environment}, 'proposed', 1, ${proposal.reason},
        ${personId}, ${new Date(now)}, ${expires})`
    yield* recorded("propose", { id, project_id: projectId }, personId)
    yield* addCall(sql, { review_id: id, kind: "service" }, new Date(now))
    return yield* reads.view(id)
  })
})
