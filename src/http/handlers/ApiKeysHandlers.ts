/** Handlers of `/v1/api-keys/`. */
import { Effect } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { ApiKeysApi } from "../../../schemas/api/ApiKeysApi.ts"
import { Credential, Principal } from "../../../schemas/api/CredentialsApi.ts"
import { CreatedApiKey } from "../../../schemas/mail/ApiKey.ts"
import { ApiKeys } from "../../../services/accounts/ApiKeys.ts"
import { Principals } from "../../../services/authentication/Principals.ts"
import { addFastRead } from "../edge/FastReads.ts"
import { answerAccount } from "../auth/AccountAuth.ts"
import { AccountLimits } from "../auth/Limits.ts"
import { keyedAround } from "./IdempotentResponse.ts"

const Api = HttpApi.make("bailiwick").add(ApiKeysApi)

const withoutKey = (created: CreatedApiKey): CreatedApiKey => ({ ...created, key: null })

export const apiKeys = HttpApiBuilder.group(
  Api,
  "api-keys",
  Effect.fn(function* (handlers) {
    const keys = yield* ApiKeys
    yield* addFastRead(
      ApiKeysApi,
      ApiKeysApi.endpoints.listApiKeys,
      answerAccount(yield* Principals, yield* AccountLimits, (credential) => keys.list(credential)),
    )
    return handlers.handleAll({
      createApiKey: Effect.fnUntraced(function* ({ payload }) {
        const principal = yield* Principal
        const how = { principal: `account:${principal.accountId}`, payload, status: 201, success: CreatedApiKey }
        return yield* keyedAround({ ...how, keep: withoutKey }, keys.create(principal, payload))
      }),
      listApiKeys: Effect.fnUntraced(function* () {
        const body = yield* keys.list(yield* Credential)
        return HttpServerResponse.text(body, { contentType: "application/json" })
      }),
      revokeApiKey: Effect.fnUntraced(function* ({ params }) {
        yield* keys.revoke(yield* Principal, params.key_id)
      }),
    })
  }),
)
