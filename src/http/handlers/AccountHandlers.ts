/** Handlers of the account's own reads. */
import { Effect } from "effect"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { AccountApi } from "../../../schemas/api/AccountApi.ts"
import { Principal } from "../../../schemas/api/CredentialsApi.ts"
import { AccountReads } from "../../../services/accounts/AccountReads.ts"

const Api = HttpApi.make("bailiwick").add(AccountApi)

interface Query {
  readonly limit: number
  readonly after_id?: string
}

const pageOf = ({ after_id, limit }: Query) => ({ limit, afterId: after_id ?? null })

export const account = HttpApiBuilder.group(
  Api,
  "account",
  Effect.fn(function* (handlers) {
    const service = yield* AccountReads
    return handlers.handleAll({
      getAccount: Effect.fnUntraced(function* () {
        return yield* service.account((yield* Principal).accountId)
      }),
      listWorkspaces: Effect.fnUntraced(function* ({ query }) {
        return yield* service.workspaces((yield* Principal).accountId, pageOf(query))
      }),
      listDomains: Effect.fnUntraced(function* ({ query }) {
        const { accountId, platformAdmin, via } = yield* Principal
        const name = query.name ?? null
        // As in a forced move: with an API key, an administrator finds only the domains of the key's account.
        return yield* name !== null && platformAdmin && via === "cookie"
          ? service.domainsNamed(accountId, pageOf(query), name)
          : service.domains(accountId, pageOf(query), name)
      }),
      getDomain: Effect.fnUntraced(function* ({ params }) {
        return yield* service.domain((yield* Principal).accountId, params.domain_id)
      }),
    })
  }),
)
