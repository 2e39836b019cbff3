/** Handlers of `/v1/projects/{project_id}/lifecycle-service-grants`. */
import { Effect } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { ServiceGrantsApi } from "../../../schemas/api/ServiceGrantsApi.ts"
import type { ProjectId } from "../../../schemas/BrandedIds.ts"
import { GrantRead } from "../../../schemas/identity/ServiceGrant.ts"
import { ServiceGrants } from "../../../services/access/ServiceGrants.ts"
import { keyed } from "./IdempotentResponse.ts"
import { approving, personIn } from "../auth/PersonAuth.ts"

const Api = HttpApi.make("bailiwick").add(ServiceGrantsApi)

/** The `Link` header (RFC 8288) to the next page, where this page is full. */
const next = (page: ReadonlyArray<GrantRead>, projectId: ProjectId, limit: number): Record<string, string> => {
  const last = page.at(-1)
  if (last === undefined || page.length < limit) return {}
  const path = `/v1/projects/${encodeURIComponent(projectId)}/lifecycle-service-grants`
  return { link: `<${path}?limit=${limit}&after_id=${last.id}>; rel="next"` }
}

export const serviceGrants = HttpApiBuilder.group(
  Api,
  "lifecycle-service-grants",
  Effect.fn(function* (handlers) {
    const grants = yield* ServiceGrants
    return handlers.handleAll({
      proposeLifecycleServiceGrant: Effect.fnUntraced(function* ({ params, payload }) {
        const { personId, principal } = yield* personIn
        return yield* keyed(
          { principal, payload, status: 201, success: GrantRead },
          grants.propose({ ...payload, personId, projectId: params.project_id }),
        )
      }),
      listLifecycleServiceGrants: Effect.fnUntraced(function* ({ params, query }) {
        const { personId } = yield* personIn
        const limit = Number(query.limit)
        const page = yield* grants.list({
          personId,
          projectId: params.project_id,
          limit,
          afterId: query.after_id ?? null,
        }).pipe(Effect.catchTag("SqlError", Effect.die))
        return HttpServerResponse.jsonUnsafe(page, { headers: next(page, params.project_id, limit) })
      }),
      approveLifecycleServiceGrant: Effect.fnUntraced(function* ({ params, payload, query }) {
        const { personId, principal } = yield* personIn
        const approval = {
          personId,
          projectId: params.project_id,
          grantId: params.grant_id,
          reason: payload.reason,
          expectedVersion: payload.expected_version,
          stepUp: yield* approving,
        }
        const asked = { principal, payload, status: 200, success: GrantRead, dryRun: query.dry_run }
        return yield* keyed(asked, grants.approve(approval))
      }),
      revokeLifecycleServiceGrant: Effect.fnUntraced(function* ({ params, payload }) {
        const { personId, principal } = yield* personIn
        const revocation = { personId, projectId: params.project_id, grantId: params.grant_id, reason: payload.reason }
        return yield* keyed({ principal, payload, status: 200, success: GrantRead }, grants.revoke(revocation))
      }),
    })
  }),
)
