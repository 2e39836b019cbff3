/** Handlers of the domain transfers. */
import { Clock, Effect } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { Credential, Principal } from "../../../schemas/api/CredentialsApi.ts"
import { CommandId, type TransferId } from "../../../schemas/BrandedIds.ts"
import { TransfersApi } from "../../../schemas/api/TransfersApi.ts"
import { Accept, Force, Initiate } from "../../../schemas/mail/DomainCommands.ts"
import { Forbidden } from "../../../schemas/problems/HttpProblems.ts"
import { InsufficientUserAuthentication } from "../../../schemas/problems/IdentityProblems.ts"
import { TransferNotFound } from "../../../schemas/problems/TransferProblems.ts"
import { isUuid, lowerCased } from "../../../schemas/Wire.ts"
import { Ids } from "../../../services/platform/Ids.ts"
import { type Located, type Named, Transfers } from "../../../services/transfers/Transfers.ts"
import { domainMailbox } from "../../actors/DomainMailbox.ts"

const Api = HttpApi.make("bailiwick").add(TransfersApi)

const json = (body: string) => HttpServerResponse.text(body, { contentType: "application/json" })

/** How old an administrator's sign-in may be, in seconds (docs/api/mail.md). */
const maxAge = 300

const idOf = <Id extends string>(id: Id) =>
  isUuid(id) ? Effect.succeed(lowerCased(id)) : Effect.fail(new TransferNotFound())

const command = Effect.gen(function* () {
  return { commandId: CommandId.make(yield* (yield* Ids).next) }
})

const byCaller = Effect.gen(function* () {
  return { ...(yield* command), accountId: (yield* Principal).accountId }
})

const administrator = Effect.gen(function* () {
  const { authTime, platformAdmin, via } = yield* Principal
  if (!platformAdmin || via !== "cookie") {
    return yield* new Forbidden({ detail: "This needs a platform administrator who is signed in by cookie." })
  }
  const now = yield* Clock.currentTimeMillis
  if (authTime === null || now / 1_000 - authTime > maxAge) {
    return yield* new InsufficientUserAuthentication({ max_age: maxAge })
  }
})

export const transfers = HttpApiBuilder.group(
  Api,
  "transfers",
  Effect.fn(function* (handlers) {
    const service = yield* Transfers
    const mailbox = yield* domainMailbox

    const locate = Effect.fnUntraced(function* (...named: Named) {
      return (yield* service.locate(...named)) ?? (yield* new TransferNotFound())
    })
    const locateById = (id: TransferId) => Effect.flatMap(idOf(id), (own) => locate("id", own))

    const accept = Effect.fnUntraced(
      function* ({ domainId, transferId }: Located, byToken: boolean, payload: typeof Accept.body.schema.Type) {
        const asked = { byToken, ...Accept.body.read(payload) }
        return yield* mailbox.accept(domainId, { ...(yield* byCaller), transferId, ...asked })
      },
    )

    return handlers.handleAll({
      initiateTransfer: Effect.fnUntraced(function* ({ params, payload }) {
        const domainId = yield* idOf(params.domain_id)
        return yield* mailbox.initiate({ ...(yield* byCaller), ...Initiate.body.read(payload), domainId })
      }),
      listIncomingTransfers: Effect.fnUntraced(function* () {
        return json(yield* service.incoming(yield* Credential))
      }),
      listOutgoingTransfers: Effect.fnUntraced(function* () {
        return json(yield* service.outgoing(yield* Credential))
      }),
      getDomainDkim: Effect.fnUntraced(function* ({ params }) {
        return yield* service.dkim((yield* Principal).accountId, yield* idOf(params.domain_id))
      }),
      acceptEligibility: Effect.fnUntraced(function* () {
        return yield* service.eligibility((yield* Principal).accountId)
      }),
      getTransfer: Effect.fnUntraced(function* ({ params }) {
        return yield* service.read((yield* Principal).accountId, yield* idOf(params.transfer_id))
      }),
      acceptTransfer: ({ params, payload }) =>
        Effect.flatMap(locate("accept", params.token), (located) => accept(located, true, payload)),
      acceptTransferById: ({ params, payload }) =>
        Effect.flatMap(locateById(params.transfer_id), (located) => accept(located, false, payload)),
      declineTransfer: Effect.fnUntraced(function* ({ params }) {
        const { domainId, transferId } = yield* locateById(params.transfer_id)
        return yield* mailbox.decline(domainId, { ...(yield* byCaller), transferId })
      }),
      cancelTransfer: Effect.fnUntraced(function* ({ params }) {
        const { domainId, transferId } = yield* locateById(params.transfer_id)
        return yield* mailbox.cancel(domainId, { ...(yield* byCaller), transferId })
      }),
      stopTransfer: Effect.fnUntraced(function* ({ params }) {
        const { domainId, transferId } = yield* locate("stop", params.stop_token)
        return yield* mailbox.stop(domainId, { ...(yield* command), transferId })
      }),
      forceTransfer: Effect.fnUntraced(function* ({ params, payload }) {
        yield* administrator
        const domainId = yield* idOf(params.domain_id)
        return yield* mailbox.force({ ...(yield* byCaller), ...Force.body.read(payload), domainId })
      }),
    })
  }),
)
