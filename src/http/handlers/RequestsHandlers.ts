/** Handlers of people's own requests. */
import { Effect } from "effect"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { Caller } from "../../../schemas/api/ManagementApi.ts"
import { RequestsApi } from "../../../schemas/api/RequestsApi.ts"
import {
  AccessRequest,
  CreatedPerson,
  LinkProof,
  LinkRequest,
  OrganizationRequest,
  OwnRequest,
} from "../../../schemas/identity/RequestBodies.ts"
import { PolicyDecisions } from "../../../services/decisions/PolicyDecisions.ts"
import { Requests } from "../../../services/decisions/Requests.ts"
import { Links } from "../../../services/links/Links.ts"
import { NewPeople, tooLong } from "../../../services/people/NewPeople.ts"
import { decidedOnce } from "./DecidedOnce.ts"
import { keyedFenced } from "./IdempotentResponse.ts"
import { personIn, personOf } from "../auth/PersonAuth.ts"

const Api = HttpApi.make("bailiwick").add(RequestsApi)

export const requests = HttpApiBuilder.group(
  Api,
  "requests",
  Effect.fn(function* (handlers) {
    const service = yield* Requests
    const links = yield* Links
    const people = yield* NewPeople
    const policies = yield* PolicyDecisions
    return handlers.handleAll({
      createOrganizationRequest: Effect.fnUntraced(function* ({ payload }) {
        const { personId, principal } = yield* personOf
        return yield* keyedFenced(
          { principal, payload, status: 201, success: OrganizationRequest },
          service.organization({ ...payload, personId }),
        )
      }),
      createAccessRequest: Effect.fnUntraced(function* ({ payload }) {
        const { personId, principal } = yield* personOf
        return yield* keyedFenced(
          { principal, payload, status: 201, success: AccessRequest },
          service.access({ ...payload, personId }),
        )
      }),
      createTemporaryAccessRequest: Effect.fnUntraced(function* ({ payload }) {
        const { personId, principal } = yield* personOf
        return yield* keyedFenced(
          { principal, payload, status: 201, success: AccessRequest },
          service.access({ ...payload, personId }),
        )
      }),
      listOwnRequests: Effect.fnUntraced(function* ({ query }) {
        const { personId } = yield* personOf
        const page = { limit: Number(query.limit), afterId: query.after_id ?? null }
        return yield* service.mine(personId, page).pipe(Effect.catchTag("SqlError", Effect.die))
      }),
      withdrawRequest: Effect.fnUntraced(function* ({ params, payload }) {
        const { personId, principal } = yield* personIn
        const withdrawal = { personId, requestId: params.request_id, reason: payload.reason }
        return yield* decidedOnce({ principal, payload, success: OwnRequest }, policies.withdraw(withdrawal))
      }),
      createPerson: Effect.fnUntraced(function* ({ payload }) {
        const by = yield* Caller
        const { principal } = by
        return yield* keyedFenced(
          { principal, payload, status: 201, success: CreatedPerson, refused: tooLong },
          people.create({ ...payload, by }),
        )
      }),
      createLinkProof: Effect.fnUntraced(function* ({ payload }) {
        const { personId, principal } = yield* personOf
        return yield* keyedFenced(
          { principal, payload, status: 201, success: LinkProof },
          links.prove({ ...payload, personId }),
        )
      }),
      createLinkRequest: Effect.fnUntraced(function* ({ payload }) {
        const { personId, principal } = yield* personOf
        return yield* keyedFenced(
          { principal, payload, status: 201, success: LinkRequest },
          links.request({ ...payload, personId }),
        )
      }),
      objectToLinkRequest: Effect.fnUntraced(function* ({ params, payload }) {
        const { personId, principal } = yield* personIn
        return yield* keyedFenced(
          { principal, payload, status: 200, success: LinkRequest },
          links.object({ personId, linkRequestId: params.link_request_id, reason: payload.reason ?? null }),
        )
      }),
    })
  }),
)
