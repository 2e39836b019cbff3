/** Handlers of `/v1/webhooks` and `/v1/webhook-deliveries`. */
import { Effect } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { Credential, Principal } from "../../../schemas/api/CredentialsApi.ts"
import { ChangedDelivery, WebhooksApi, type WebhookUpdate } from "../../../schemas/api/WebhooksApi.ts"
import { WebhookNotFound } from "../../../schemas/problems/WebhookProblems.ts"
import { isUuid } from "../../../schemas/Wire.ts"
import { Principals } from "../../../services/authentication/Principals.ts"
import { DeliveryRecords } from "../../../services/webhooks/DeliveryRecords.ts"
import { Replays } from "../../../services/webhooks/Replays.ts"
import { WaitingDeliveries } from "../../../services/webhooks/WaitingDeliveries.ts"
import { Webhooks } from "../../../services/webhooks/Webhooks.ts"
import { addFastRead } from "../edge/FastReads.ts"
import { answerAccount } from "../auth/AccountAuth.ts"
import { AccountLimits } from "../auth/Limits.ts"
import { keyedAfter } from "./IdempotentResponse.ts"

const Api = HttpApi.make("bailiwick").add(WebhooksApi)

const json = (body: string) => HttpServerResponse.text(body, { contentType: "application/json" })

/** The id in lower case, as the row has it: the secret is sealed under it. An id that is no UUID is not found. */
const idOf = (id: string) => isUuid(id) ? Effect.succeed(id.toLowerCase()) : Effect.fail(new WebhookNotFound())

/** What an update changes; a field that is null or absent stays as it is. */
const changeOf = ({ description, events, is_active, url }: WebhookUpdate) => ({
  ...(url == null ? {} : { url }),
  ...(events == null ? {} : { events }),
  ...(description == null ? {} : { description }),
  ...(is_active == null ? {} : { isActive: is_active }),
})

export const webhooks = HttpApiBuilder.group(
  Api,
  "webhooks",
  Effect.fn(function* (handlers) {
    const service = yield* Webhooks
    const records = yield* DeliveryRecords
    const replays = yield* Replays
    const waiting = yield* WaitingDeliveries
    yield* addFastRead(
      WebhooksApi,
      WebhooksApi.endpoints.listDeliveries,
      answerAccount(
        yield* Principals,
        yield* AccountLimits,
        (credential, { params, query }) => records.page(credential, params.webhook_id, query),
      ),
    )

    /** Answers a command on a waiting delivery under its idempotency key. */
    const changed = Effect.fnUntraced(function* (what: "retryNow" | "cancel", status: number, deliveryId: string) {
      const { accountId } = yield* Principal
      const how = { principal: `account:${accountId}`, payload: undefined, status, success: ChangedDelivery }
      return yield* keyedAfter(how, waiting[what](accountId, deliveryId))
    })

    return handlers.handleAll({
      listWebhooks: Effect.fnUntraced(function* ({ query }) {
        return json(yield* service.list(yield* Credential, query.include_paused))
      }),
      createWebhook: Effect.fnUntraced(function* ({ payload }) {
        const { description, ...webhook } = payload
        return yield* service.create((yield* Principal).accountId, {
          ...webhook,
          description: description ?? undefined,
        })
      }),
      getWebhook: Effect.fnUntraced(function* ({ params }) {
        return yield* service.get((yield* Principal).accountId, params.webhook_id)
      }),
      updateWebhook: Effect.fnUntraced(function* ({ params, payload }) {
        const id = yield* idOf(params.webhook_id)
        return yield* service.update((yield* Principal).accountId, id, changeOf(payload))
      }),
      deleteWebhook: Effect.fnUntraced(function* ({ params }) {
        yield* service.remove((yield* Principal).accountId, yield* idOf(params.webhook_id))
      }),
      rotateSecret: Effect.fnUntraced(function* ({ params, payload }) {
        const id = yield* idOf(params.webhook_id)
        return yield* service.rotate((yield* Principal).accountId, id, payload.overlap_seconds)
      }),
      testWebhook: Effect.fnUntraced(function* ({ params, payload }) {
        return yield* replays.test((yield* Principal).accountId, params.webhook_id, payload.event ?? undefined)
      }),
      replayWebhook: Effect.fnUntraced(function* ({ params, payload }) {
        const replayed = yield* replays.many((yield* Principal).accountId, params.webhook_id, {
          since: Date.parse(payload.since.toUpperCase()),
          until: payload.until == null ? null : Date.parse(payload.until.toUpperCase()),
          status: payload.status ?? "dead_letter",
        })
        return { replayed }
      }),
      listDeliveries: Effect.fnUntraced(function* ({ params, query }) {
        return json(yield* records.page(yield* Credential, params.webhook_id, query))
      }),
      getWebhookDelivery: Effect.fnUntraced(function* ({ params }) {
        return json(yield* records.get((yield* Principal).accountId, params.delivery_id, params.webhook_id))
      }),
      getDelivery: Effect.fnUntraced(function* ({ params }) {
        return json(yield* records.get((yield* Principal).accountId, params.delivery_id))
      }),
      replayDelivery: Effect.fnUntraced(function* ({ params }) {
        yield* replays.one((yield* Principal).accountId, params.delivery_id)
        return { id: params.delivery_id.toLowerCase(), status: "pending" as const }
      }),
      retryDelivery: ({ params }) => changed("retryNow", 202, params.delivery_id),
      cancelDelivery: ({ params }) => changed("cancel", 200, params.delivery_id),
    })
  }),
)
