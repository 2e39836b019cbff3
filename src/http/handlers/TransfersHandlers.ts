/**
 * Handlers of the domain transfers. A command goes to the actor of its domain, or straight to the service where the
 * actor does not answer.
 */
import { Clock, Effect } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { DomainActor } from "../../../schemas/actors/DomainActor.ts"
import { Credential, Principal } from "../../../schemas/api/CredentialsApi.ts"
import { TransfersApi } from "../../../schemas/api/TransfersApi.ts"
import { Forbidden } from "../../../schemas/problems/HttpProblems.ts"
import { InsufficientUserAuthentication } from "../../../schemas/problems/IdentityProblems.ts"
import { TransferNotFound } from "../../../schemas/problems/TransferProblems.ts"
import { isUuid } from "../../../schemas/Wire.ts"
import { CurrentRequest } from "../../../services/platform/observability/CurrentRequest.ts"
import { Ids } from "../../../services/platform/Ids.ts"
import { send } from "../../../services/platform/messaging/Mailbox.ts"
import { Transfers } from "../../../services/transfers/Transfers.ts"

const Api = HttpApi.make("bailiwick").add(TransfersApi)

const json = (body: string) => HttpServerResponse.text(body, { contentType: "application/json" })

/** How old an administrator's sign-in may be, in seconds (docs/api/mail.md). */
const maxAge = 300

const idOf = (id: string) => isUuid(id) ? Effect.succeed(id.toLowerCase()) : Effect.fail(new TransferNotFound())

/** A command has the same id whether it goes to the actor or to the service, so that it takes effect once. */
const command = Effect.gen(function* () {
  return { commandId: yield* (yield* Ids).next }
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

interface Acceptance {
  readonly target_org_id?: string | null
  readonly rotate_dkim?: boolean | null
}

export const transfers = HttpApiBuilder.group(
  Api,
  "transfers",
  Effect.fn(function* (handlers) {
    const service = yield* Transfers
    const actor = yield* DomainActor.client

    const locate = Effect.fnUntraced(function* (by: "id" | "accept" | "stop", text: string) {
      const found = yield* service.locate(by, by === "id" ? yield* idOf(text) : text)
      return found ?? (yield* new TransferNotFound())
    })

    const accept = Effect.fnUntraced(function* (by: "id" | "accept", text: string, payload: Acceptance) {
      const { domainId, transferId } = yield* locate(by, text)
      const accepted = {
        ...(yield* byCaller),
        transferId,
        byToken: by === "accept",
        orgId: payload.target_org_id ?? null,
        rotateDkim: payload.rotate_dkim ?? false,
      }
      const origin = yield* CurrentRequest
      return yield* send(actor(domainId).Accept({ ...accepted, origin }), service.accept(accepted))
    })

    return handlers.handleAll({
      initiateTransfer: Effect.fnUntraced(function* ({ params, payload }) {
        const domainId = yield* idOf(params.domain_id)
        const caller = yield* byCaller
        const offer = { ...caller, targetEmail: payload.target_email, note: payload.note ?? null }
        const origin = yield* CurrentRequest
        return yield* send(actor(domainId).Initiate({ ...offer, origin }), service.initiate({ ...offer, domainId }))
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
      acceptTransfer: ({ params, payload }) => accept("accept", params.token, payload),
      acceptTransferById: ({ params, payload }) => accept("id", params.transfer_id, payload),
      declineTransfer: Effect.fnUntraced(function* ({ params }) {
        const { domainId, transferId } = yield* locate("id", params.transfer_id)
        const declined = { ...(yield* byCaller), transferId }
        const origin = yield* CurrentRequest
        return yield* send(actor(domainId).Decline({ ...declined, origin }), service.decline(declined))
      }),
      cancelTransfer: Effect.fnUntraced(function* ({ params }) {
        const { domainId, transferId } = yield* locate("id", params.transfer_id)
        const cancelled = { ...(yield* byCaller), transferId }
        const origin = yield* CurrentRequest
        return yield* send(actor(domainId).Cancel({ ...cancelled, origin }), service.cancel(cancelled))
      }),
      stopTransfer: Effect.fnUntraced(function* ({ params }) {
        const { domainId, transferId } = yield* locate("stop", params.stop_token)
        const stopped = { ...(yield* command), transferId }
        const origin = yield* CurrentRequest
        return yield* send(actor(domainId).Stop({ ...stopped, origin }), service.stop(stopped))
      }),
      forceTransfer: Effect.fnUntraced(function* ({ params, payload }) {
        yield* administrator
        const domainId = yield* idOf(params.domain_id)
        const caller = yield* byCaller
        const forced = { ...caller, targetEmail: payload.target_email, rotateDkim: payload.rotate_dkim ?? true }
        const origin = yield* CurrentRequest
        return yield* send(actor(domainId).Force({ ...forced, origin }), service.force({ ...forced, domainId }))
      }),
    })
  }),
)
