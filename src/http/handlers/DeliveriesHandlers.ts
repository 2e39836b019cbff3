/** Handlers of the deliveries of all webhooks, of a replay's count, of statistics, and of the event types. */
import { Effect } from "effect"
import { HttpServerRequest } from "effect/http"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { Principal } from "../../../schemas/api/CredentialsApi.ts"
import { DeliveriesApi } from "../../../schemas/api/DeliveriesApi.ts"
import { catalogue } from "../../../schemas/mail/EventCatalogue.ts"
import { AccountDeliveries } from "../../../services/webhooks/AccountDeliveries.ts"
import { DeliveryStream } from "../../../services/webhooks/DeliveryStream.ts"
import { DeliveryStats } from "../../../services/webhooks/DeliveryStats.ts"
import { Replays } from "../../../services/webhooks/Replays.ts"
import { presentAgain } from "../auth/AccountAuth.ts"
import { eventStream } from "../edge/StreamingResponse.ts"

const Api = HttpApi.make("bailiwick").add(DeliveriesApi)

/** Milliseconds since the epoch; `Date.parse` reads what the contract takes once it is in upper case. */
const millisOf = (time: string | undefined) => time === undefined ? undefined : Date.parse(time.toUpperCase())

const spanOf = ({ since, until }: { readonly since?: string; readonly until?: string }) => ({
  since: millisOf(since),
  until: millisOf(until),
})

export const deliveries = HttpApiBuilder.group(
  Api,
  "deliveries",
  Effect.fn(function* (handlers) {
    const service = yield* AccountDeliveries
    const replays = yield* Replays
    const stats = yield* DeliveryStats
    const stream = yield* DeliveryStream
    const again = yield* presentAgain
    return handlers.handleAll({
      listAllDeliveries: Effect.fnUntraced(function* ({ query }) {
        return yield* service.list((yield* Principal).accountId, {
          status: query.status,
          eventType: query.event_type,
          webhookId: query.webhook_id,
          responseStatus: query.response_status,
          emailId: query.email_id,
          eventId: query.event_id,
          since: millisOf(query.since),
          until: millisOf(query.until),
          limit: query.limit,
          afterId: query.after_id,
        })
      }),
      streamDeliveries: Effect.fnUntraced(function* () {
        const { accountId } = yield* Principal
        const credential = again(yield* HttpServerRequest.HttpServerRequest)
        return eventStream(yield* stream.open({ accountId, credential }))
      }),
      countReplay: Effect.fnUntraced(function* ({ params, query }) {
        const span = {
          since: millisOf(query.since)!,
          until: millisOf(query.until) ?? null,
          status: query.status ?? "dead_letter" as const,
          eventType: query.event_type,
          askedAt: millisOf(query.asked_at),
        }
        return { deliveries: yield* replays.count((yield* Principal).accountId, params.webhook_id, span) }
      }),
      webhookStats: Effect.fnUntraced(function* ({ query }) {
        return yield* stats.ofAccount((yield* Principal).accountId, spanOf(query))
      }),
      deliveryHours: Effect.fnUntraced(function* () {
        return yield* stats.hours((yield* Principal).accountId)
      }),
      oneWebhookStats: Effect.fnUntraced(function* ({ params, query }) {
        return yield* stats.ofWebhook((yield* Principal).accountId, params.webhook_id, spanOf(query))
      }),
      listEventTypes: Effect.fnUntraced(function* () {
        return { items: catalogue(yield* service.takers((yield* Principal).accountId)) }
      }),
    })
  }),
)
