/** Handlers of the domain transfers. */
import { Clock, Effect } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { Credential, Principal } from "../../../schemas/api/CredentialsApi.ts"
import { type AccountId, CommandId, type TransferId } from "../../../schemas/BrandedIds.ts"
import { TransfersApi } from "../../../schemas/api/TransfersApi.ts"
import type { PendingReceipt } from "../../../schemas/identity/PendingReceipt.ts"
import { Accept, Force, Initiate } from "../../../schemas/mail/DomainCommands.ts"
import { DomainTransfer } from "../../../schemas/mail/Transfer.ts"
import { Forbidden } from "../../../schemas/problems/HttpProblems.ts"
import { InsufficientUserAuthentication } from "../../../schemas/problems/IdentityProblems.ts"
import { TransferNotFound } from "../../../schemas/problems/TransferProblems.ts"
import { isUuid, lowerCased } from "../../../schemas/Wire.ts"
import { Ids } from "../../../services/platform/Ids.ts"
import { type Located, type Named, Transfers } from "../../../services/transfers/Transfers.ts"
import { stopPrincipal } from "../../../services/platform/security/ReceiptRetention.ts"
import { domainMailbox } from "../../actors/DomainMailbox.ts"
import { keyedByActor } from "./IdempotentResponse.ts"

const Api = HttpApi.make("bailiwick").add(TransfersApi)

const json = (body: string) => HttpServerResponse.text(body, { contentType: "application/json" })

const pageOf = ({ after_id, limit }: { readonly limit: number; readonly after_id?: string }) => ({
  limit,
  afterId: after_id ?? null,
})

/** How old an administrator's sign-in may be, in seconds (docs/api/mail.md). */
const maxAge = 300

interface Own {
  readonly commandId: CommandId
  readonly receipt?: PendingReceipt
  readonly accountId: AccountId
}

const idOf = <Id extends string>(id: Id) =>
  isUuid(id) ? Effect.succeed(lowerCased(id)) : Effect.fail(new TransferNotFound())

/** How a command is answered under its idempotency key. */
const answering = (principal: string, payload?: unknown) => ({
  principal,
  payload,
  status: 200,
  success: DomainTransfer,
})

const commandOf = (receipt: PendingReceipt | null) =>
  Effect.map(Effect.flatMap(Ids, ({ next }) => next), (id) => ({
    commandId: CommandId.make(id),
    ...(receipt === null ? {} : { receipt }),
  }))

/** Sends a command of the caller, once for its idempotency key. `named`: the transfer, in place of a token in the path. */
const byCaller = <E, R>(
  send: (command: Own) => Effect.Effect<DomainTransfer, E, R>,
  payload?: unknown,
  named?: Readonly<Record<string, string>>,
) =>
  Effect.flatMap(Principal, ({ accountId }) =>
    keyedByActor(
      { ...answering(`account:${accountId}`, payload), ...(named === undefined ? {} : { named }) },
      (receipt) => Effect.flatMap(commandOf(receipt), (command) => send({ ...command, accountId })),
    ))

const platformAdministrator = Effect.gen(function* () {
  const principal = yield* Principal
  if (!principal.platformAdmin || principal.via !== "cookie") {
    return yield* new Forbidden({ detail: "This needs a platform administrator who is signed in by cookie." })
  }
  return principal
})

const administrator = Effect.gen(function* () {
  const { authTime } = yield* platformAdministrator
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

    const accept = (
      { domainId, transferId }: Located,
      payload: typeof Accept.body.schema.Type,
      named?: Readonly<Record<string, string>>,
    ) => {
      const asked = { transferId, byToken: named !== undefined, ...Accept.body.read(payload) }
      return byCaller((own) => mailbox.accept(domainId, { ...own, ...asked }), payload, named)
    }

    return handlers.handleAll({
      initiateTransfer: Effect.fnUntraced(function* ({ params, payload }) {
        const domainId = yield* idOf(params.domain_id)
        const offer = { ...Initiate.body.read(payload), domainId }
        return yield* byCaller((own) => mailbox.initiate({ ...own, ...offer }), payload)
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
        Effect.flatMap(
          locate("accept", params.token),
          (located) => accept(located, payload, { token: located.transferId }),
        ),
      acceptTransferById: ({ params, payload }) =>
        Effect.flatMap(locateById(params.transfer_id), (located) => accept(located, payload)),
      declineTransfer: Effect.fnUntraced(function* ({ params }) {
        const { domainId, transferId } = yield* locateById(params.transfer_id)
        return yield* byCaller((own) => mailbox.decline(domainId, { ...own, transferId }))
      }),
      cancelTransfer: Effect.fnUntraced(function* ({ params }) {
        const { domainId, transferId } = yield* locateById(params.transfer_id)
        return yield* byCaller((own) => mailbox.cancel(domainId, { ...own, transferId }))
      }),
      stopTransfer: Effect.fnUntraced(function* ({ params }) {
        const { domainId, transferId } = yield* locate("stop", params.stop_token)
        return yield* keyedByActor(
          { ...answering(stopPrincipal), named: { stop_token: transferId } },
          (receipt) =>
            Effect.flatMap(commandOf(receipt), (command) => mailbox.stop(domainId, { ...command, transferId })),
        )
      }),
      listReceivedTransfers: Effect.fnUntraced(function* ({ query }) {
        return yield* service.received((yield* Principal).accountId, pageOf(query))
      }),
      listAllTransfers: Effect.fnUntraced(function* ({ query }) {
        yield* platformAdministrator
        return yield* service.all({ status: query.status ?? null, name: query.name ?? null }, pageOf(query))
      }),
      forceTransfer: Effect.fnUntraced(function* ({ params, payload }) {
        const domainId = yield* idOf(params.domain_id)
        const forced = { ...Force.body.read(payload), domainId }
        return yield* byCaller(
          (own) => Effect.andThen(administrator, mailbox.force({ ...own, ...forced })),
          payload,
        )
      }),
    })
  }),
)
