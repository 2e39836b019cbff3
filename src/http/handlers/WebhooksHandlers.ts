/** Handlers of `/v1/webhooks` and `/v1/webhook-deliveries`. */
import { Effect } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import type { DeliveryId, WebhookId } from "../../../schemas/BrandedIds.ts"
import { Credential, Principal } from "../../../schemas/api/CredentialsApi.ts"
import {
  ChangedDelivery,
  type NewWebhook,
  Replayed,
  type ReplayRequest,
  TestAnswer,
  WebhooksApi,
  type WebhookUpdate,
} from "../../../schemas/api/WebhooksApi.ts"
import { WebhookWithSecret } from "../../../schemas/mail/Webhook.ts"
import { WebhookNotFound } from "../../../schemas/problems/WebhookProblems.ts"
import { isUuid, lowerCased } from "../../../schemas/Wire.ts"
import { Principals } from "../../../services/authentication/Principals.ts"
import { DeliveryRecords } from "../../../services/webhooks/DeliveryRecords.ts"
import { Replays } from "../../../services/webhooks/Replays.ts"
import { WaitingDeliveries } from "../../../services/webhooks/WaitingDeliveries.ts"
import { Webhooks } from "../../../services/webhooks/Webhooks.ts"
import { addFastRead } from "../edge/FastReads.ts"
import { answerAccount } from "../auth/AccountAuth.ts"
import { AccountLimits } from "../auth/Limits.ts"
import { keyedAfter, keyedAround } from "./IdempotentResponse.ts"

const Api = HttpApi.make("bailiwick").add(WebhooksApi)

const json = (body: string) => HttpServerResponse.text(body, { contentType: "application/json" })

/** The id in lower case, as the row has it: the secret is sealed under it. An id that is no UUID is not found. */
const idOf = (id: WebhookId) => isUuid(id) ? Effect.succeed(lowerCased(id)) : Effect.fail(new WebhookNotFound())

const withoutSecret = (webhook: WebhookWithSecret): WebhookWithSecret => ({ ...webhook, secret: null })

/** How a command is answered under its idempotency key. */
const answering = <S>(success: S, status: number, payload?: unknown) =>
  Effect.map(Principal, ({ accountId }) => ({ principal: `account:${accountId}`, payload, status, success }))

/** An answer with a secret, which a repeated request does not get again. */
const secretAnswer = (status: number, payload: unknown) =>
  Effect.map(answering(WebhookWithSecret, status, payload), (how) => ({ ...how, keep: withoutSecret }))

const spanOf = ({ event_type, since, status, until }: ReplayRequest) => ({
  since: Date.parse(since.toUpperCase()),
  until: until == null ? null : Date.parse(until.toUpperCase()),
  status: status ?? "dead_letter" as const,
  eventType: event_type ?? undefined,
})

/** The settings of a webhook that creation and update share; one that is null or absent stays as it is. */
const settingsOf = (
  { basic_auth, description, headers, honor_retry_after, rate_limit }: NewWebhook | WebhookUpdate,
) => ({
  ...(description == null ? {} : { description }),
  ...(headers == null ? {} : { headers }),
  ...(basic_auth == null ? {} : { basicAuth: basic_auth }),
  ...(honor_retry_after == null ? {} : { honorRetryAfter: honor_retry_after }),
  ...(rate_limit == null ? {} : { rateLimit: rate_limit }),
})

/** The changes of an update; a field that is null or absent stays as it is. */
const changeOf = (update: WebhookUpdate) => ({
  ...settingsOf(update),
  ...(update.url == null ? {} : { url: update.url }),
  ...(update.events == null ? {} : { events: update.events }),
  ...(update.is_active == null ? {} : { isActive: update.is_active }),
})

const fastList = Effect.fnUntraced(function* (records: DeliveryRecords["Service"]) {
  yield* addFastRead(
    WebhooksApi,
    WebhooksApi.endpoints.listDeliveries,
    answerAccount(
      yield* Principals,
      yield* AccountLimits,
      (credential, { params, query }) => records.page(credential, params.webhook_id, query),
    ),
  )
})

export const webhooks = HttpApiBuilder.group(
  Api,
  "webhooks",
  Effect.fn(function* (handlers) {
    const service = yield* Webhooks
    const records = yield* DeliveryRecords
    const replays = yield* Replays
    const waiting = yield* WaitingDeliveries
    yield* fastList(records)

    /** Answers a command on a waiting delivery under its idempotency key. */
    const changed = Effect.fnUntraced(function* (what: "retryNow" | "cancel", status: number, deliveryId: DeliveryId) {
      const { accountId } = yield* Principal
      return yield* keyedAfter(yield* answering(ChangedDelivery, status), waiting[what](accountId, deliveryId))
    })

    return handlers.handleAll({
      listWebhooks: Effect.fnUntraced(function* ({ query }) {
        return json(yield* service.list(yield* Credential, query.include_paused))
      }),
      createWebhook: Effect.fnUntraced(function* ({ payload }) {
        const { accountId } = yield* Principal
        const { events, is_active: isActive, secret, url } = payload
        const asked = { ...settingsOf(payload), events, url, isActive: isActive ?? true }
        const command = secret == null
          ? service.create(accountId, asked)
          : Effect.map(service.create(accountId, { ...asked, secret }), withoutSecret)
        return yield* keyedAround(yield* secretAnswer(201, payload), command)
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
        const { accountId } = yield* Principal
        const command = service.rotate(accountId, id, payload.overlap_seconds)
        return yield* keyedAround(yield* secretAnswer(200, payload), command)
      }),
      testWebhook: Effect.fnUntraced(function* ({ params, payload }) {
        const { accountId } = yield* Principal
        const asking = replays.test(accountId, params.webhook_id, payload.event ?? undefined)
        return yield* keyedAfter(yield* answering(TestAnswer, 200, payload), asking)
      }),
      replayWebhook: Effect.fnUntraced(function* ({ params, payload }) {
        const { accountId } = yield* Principal
        const asking = replays.many(accountId, params.webhook_id, spanOf(payload))
        return yield* keyedAfter(yield* answering(Replayed, 202, payload), asking)
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
        const { accountId } = yield* Principal
        const done = { id: lowerCased(params.delivery_id), status: "pending" as const }
        const asking = Effect.map(replays.one(accountId, params.delivery_id), Effect.as(done))
        return yield* keyedAfter(yield* answering(ChangedDelivery, 202), asking)
      }),
      retryDelivery: ({ params }) => changed("retryNow", 202, params.delivery_id),
      cancelDelivery: ({ params }) => changed("cancel", 200, params.delivery_id),
    })
  }),
)
