/** Handlers of operations, diagnostics and jobs. */
import { Effect, Redacted } from "effect"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { OperationsApi } from "../../../schemas/api/OperationsApi.ts"
import { ProjectId } from "../../../schemas/BrandedIds.ts"
import { pageLimit } from "../../../schemas/identity/ListPage.ts"
import { Job } from "../../../schemas/identity/Operation.ts"
import type { LagPage } from "../../../services/lifecycle/Lag.ts"
import { Operations } from "../../../services/projects/Operations.ts"
import { ReviewedJobs } from "../../../services/projects/ReviewedJobs.ts"
import { keyed, keyedAfter } from "./IdempotentResponse.ts"
import { personIn, personOf } from "../auth/PersonAuth.ts"

const Api = HttpApi.make("bailiwick").add(OperationsApi)

/** Undefined where the query asks for no page. */
const lagPageOf = (query: { readonly lag_limit?: string; readonly after_lag?: string }): LagPage | undefined => {
  if (query.lag_limit === undefined && query.after_lag === undefined) return undefined
  const limit = pageLimit(query.lag_limit)
  if (query.after_lag === undefined) return { limit, after: null }
  const [lag, project, ...consumer] = query.after_lag.split(" ")
  const after = { lag_events: Number(lag), project_id: ProjectId.make(project!), consumer_id: consumer.join(" ") }
  return { limit, after }
}

export const operations = HttpApiBuilder.group(
  Api,
  "operations",
  Effect.fn(function* (handlers) {
    const work = yield* Operations
    const reviewed = yield* ReviewedJobs
    return handlers.handleAll({
      operations: Effect.fnUntraced(function* () {
        return yield* work.summary((yield* personOf).personId).pipe(Effect.catchTag("SqlError", Effect.die))
      }),
      operationsDiagnostics: Effect.fnUntraced(function* ({ query }) {
        return yield* work.diagnostics((yield* personOf).personId, lagPageOf(query)).pipe(
          Effect.catchTag("SqlError", Effect.die),
        )
      }),
      projectDiagnostics: Effect.fnUntraced(function* ({ params, query }) {
        return yield* work.projectDiagnostics((yield* personIn).personId, params.project_id, lagPageOf(query)).pipe(
          Effect.catchTag("SqlError", Effect.die),
        )
      }),
      listJobs: Effect.fnUntraced(function* ({ query }) {
        const page = { limit: Number(query.limit), afterId: query.after_id ?? null }
        return {
          items: yield* work.jobs((yield* personOf).personId, page).pipe(Effect.catchTag("SqlError", Effect.die)),
        }
      }),
      reconcileJob: Effect.fnUntraced(function* ({ params, payload }) {
        const { personId, principal } = yield* personOf
        return yield* keyedAfter(
          { principal, payload, status: 200, success: Job },
          reviewed.reconcile({ personId, jobId: params.job_id, reason: payload.reason }),
        )
      }, Effect.scoped),
      retryJob: Effect.fnUntraced(function* ({ params, payload }) {
        const { personId, principal } = yield* personOf
        return yield* keyed(
          { principal, payload, status: 200, success: Job },
          reviewed.retry({ personId, jobId: params.job_id, reason: payload.reason }),
        )
      }),
      repairJob: Effect.fnUntraced(function* ({ params, payload }) {
        const { personId, principal } = yield* personOf
        const token = payload.registration_access_token ?? null
        return yield* keyedAfter(
          { principal, payload, status: 200, success: Job },
          reviewed.repair({
            personId,
            jobId: params.job_id,
            reason: payload.reason,
            clientId: payload.client_id,
            managementUri: payload.registration_client_uri ?? null,
            managementToken: token === null ? null : Redacted.make(token),
          }),
        )
      }, Effect.scoped),
    })
  }),
)
