/** Handlers of the signing keys, for operators. */
import { Effect } from "effect"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { SigningKeysApi } from "../../../schemas/api/SigningKeysApi.ts"
import { SigningKeyRing } from "../../../schemas/identity/SigningKeyView.ts"
import { OperatorKeys } from "../../../services/operations/OperatorKeys.ts"
import { personOf, recently } from "../auth/PersonAuth.ts"
import { keyed, keyedAfter } from "./IdempotentResponse.ts"

const Api = HttpApi.make("bailiwick").add(SigningKeysApi)

export const signingKeys = HttpApiBuilder.group(
  Api,
  "signing-keys",
  Effect.fn(function* (handlers) {
    const keys = yield* OperatorKeys
    return handlers.handleAll({
      listSigningKeys: Effect.fnUntraced(function* () {
        return yield* keys.list((yield* personOf).personId).pipe(Effect.catchTag("SqlError", Effect.die))
      }),
      announceSigningKey: Effect.fnUntraced(function* ({ payload }) {
        const { personId, principal } = yield* personOf
        const { not_before: at = null, reason } = payload
        return yield* keyedAfter(
          { principal, payload, status: 200, success: SigningKeyRing },
          keys.announce({ personId, reason, notBefore: at === null ? null : Date.parse(at.toUpperCase()) }),
        )
      }),
      publishSigningKey: Effect.fnUntraced(function* ({ payload }) {
        const { personId, principal } = yield* personOf
        return yield* keyed(
          { principal, payload, status: 200, success: SigningKeyRing },
          keys.publish({ personId, reason: payload.reason }),
        )
      }),
      activateSigningKey: Effect.fnUntraced(function* ({ payload }) {
        const { personId, principal } = yield* personOf
        return yield* keyed(
          { principal, payload, status: 200, success: SigningKeyRing },
          keys.activate({ personId, reason: payload.reason, force: payload.force }),
        )
      }),
      retireSigningKey: Effect.fnUntraced(function* ({ params, payload }) {
        const { personId, principal } = yield* personOf
        return yield* keyed(
          { principal, payload, status: 200, success: SigningKeyRing },
          keys.retire({ personId, reason: payload.reason, kid: params.kid }),
        )
      }),
      compromiseSigningKey: Effect.fnUntraced(function* ({ params, payload }) {
        const { personId, principal } = yield* personOf
        const stepUp = yield* recently
        return yield* keyedAfter(
          { principal, payload, status: 200, success: SigningKeyRing },
          keys.compromise({ personId, reason: payload.reason, kid: params.kid, stepUp }),
        )
      }),
    })
  }),
)
