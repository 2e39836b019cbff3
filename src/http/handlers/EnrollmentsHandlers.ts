/** Handlers of invitations and changes of roles. */
import { Effect } from "effect"
import { HttpRouter } from "effect/http"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { createHash } from "node:crypto"
import { EnrollmentsApi } from "../../../schemas/api/EnrollmentsApi.ts"
import {
  AcceptedEnrollment,
  AuthenticatorResetRequest,
  Enrollment,
  MembershipRequest,
} from "../../../schemas/identity/RequestBodies.ts"
import { Enrollments } from "../../../services/decisions/Enrollments.ts"
import { Requests } from "../../../services/decisions/Requests.ts"
import { keyedFenced } from "./IdempotentResponse.ts"
import { personIn } from "../auth/PersonAuth.ts"

const Api = HttpApi.make("bailiwick").add(EnrollmentsApi)

/** A receipt stores its route's parameters: this replaces the token, which may still be valid, by its digest. */
const withoutToken = Effect.fnUntraced(function* (token: string) {
  const { params, route } = yield* HttpRouter.RouteContext
  return { route, params: { ...params, token: createHash("sha256").update(token).digest("hex") } }
})

export const enrollments = HttpApiBuilder.group(
  Api,
  "enrollments",
  Effect.fn(function* (handlers) {
    const service = yield* Enrollments
    const requests = yield* Requests
    return handlers.handleAll({
      createEnrollment: Effect.fnUntraced(function* ({ params, payload }) {
        const { personId, principal } = yield* personIn
        return yield* keyedFenced(
          { principal, payload, status: 201, success: Enrollment },
          service.enroll({ ...payload, personId, institutionId: params.institution_id }),
        )
      }),
      acceptEnrollment: Effect.fnUntraced(function* ({ params: { token } }) {
        const { personId, principal } = yield* personIn
        return yield* Effect.provideServiceEffect(
          keyedFenced(
            { principal, payload: undefined, status: 200, success: AcceptedEnrollment },
            service.accept({ personId, token }),
          ),
          HttpRouter.RouteContext,
          withoutToken(token),
        )
      }),
      revokeEnrollment: Effect.fnUntraced(function* ({ params, payload }) {
        const { personId, principal } = yield* personIn
        const asked = { ...payload, personId, institutionId: params.institution_id, enrollmentId: params.enrollment_id }
        return yield* keyedFenced({ principal, payload, status: 200, success: Enrollment }, service.revoke(asked))
      }),
      renewEnrollment: Effect.fnUntraced(function* ({ params, payload }) {
        const { personId, principal } = yield* personIn
        const asked = { ...payload, personId, institutionId: params.institution_id, enrollmentId: params.enrollment_id }
        return yield* keyedFenced({ principal, payload, status: 201, success: Enrollment }, service.renew(asked))
      }),
      changeMembership: Effect.fnUntraced(function* ({ params, payload }) {
        const { personId, principal } = yield* personIn
        return yield* keyedFenced(
          { principal, payload, status: 201, success: MembershipRequest },
          requests.membership({ ...payload, personId, institutionId: params.institution_id }),
        )
      }),
      requestAuthenticatorReset: Effect.fnUntraced(function* ({ params, payload }) {
        const { personId, principal } = yield* personIn
        return yield* keyedFenced(
          { principal, payload, status: 201, success: AuthenticatorResetRequest },
          requests.reset({ ...payload, personId, institutionId: params.institution_id }),
        )
      }),
    })
  }),
)
