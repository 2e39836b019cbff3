/** `deliveries`: the deliveries to an account's webhooks, their attempts, and their repetition. */
import { Clock, Console, Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { DeliveryStatus } from "../../../schemas/mail/Delivery.ts"
import { eventTypes } from "../../../schemas/mail/MailEvent.ts"
import type { WebhookDelivery } from "../../../sdk/client/Client.ts"
import { momentFlag } from "../Times.ts"
import { jsonFlag } from "../JsonFlag.ts"
import { called } from "./CallerApi.ts"
import { firstOf, limitFlag, listFlags, printOne, printRows } from "../RowOutput.ts"

const id = Argument.String("ID").pipe(Argument.withDescription("The delivery's id"))

const text = (name: string, metavar: string, description: string) =>
  Flag.String(name).pipe(Flag.withMetavar(metavar), Flag.withDescription(description), Flag.optional)

const columns = ({ attempt, created_at, event_type, id, response_status, status, webhook_id }: WebhookDelivery) => ({
  id,
  created_at,
  event_type,
  status,
  attempt,
  answer: response_status,
  webhook_id,
})

const list = Command.make(
  "list",
  {
    ...listFlags,
    limit: limitFlag,
    webhook: text("webhook", "ID", "Of this webhook only"),
    status: Flag.Literals("status", DeliveryStatus.literals).pipe(
      Flag.withDescription("Of this status only"),
      Flag.optional,
    ),
    event: Flag.Literals("event", eventTypes).pipe(Flag.withDescription("Of this type only"), Flag.optional),
    answer: text("answer", "STATUS", "By the last answer: 404, a class such as 5xx, or none"),
    emailId: text("email-id", "ID", "Of this email only"),
    eventId: text("event-id", "ID", "Of this event only, by the mail platform's id"),
    since: momentFlag("since").pipe(Flag.withDescription("Not before this time, or this long ago"), Flag.optional),
    until: momentFlag("until").pipe(Flag.withDescription("Before this time, or this long ago"), Flag.optional),
  },
  Effect.fn("cli.deliveries.list")(
    function* ({ answer, emailId, event, eventId, limit, since, status, until, webhook, ...how }) {
      const now = yield* Clock.currentTimeMillis
      const moment = (given: Option.Option<(now: number) => number>) =>
        Option.getOrUndefined(Option.map(given, (at) => new Date(at(now)).toISOString()))
      const query = {
        webhook_id: Option.getOrUndefined(webhook),
        status: Option.getOrUndefined(status),
        event_type: Option.getOrUndefined(event),
        response_status: Option.getOrUndefined(answer),
        email_id: Option.getOrUndefined(emailId),
        event_id: Option.getOrUndefined(eventId),
        since: moment(since),
        until: moment(until),
        limit: Math.min(limit, 100),
      }
      const found = yield* called((api, signal) =>
        firstOf(api.items("/v1/webhook-deliveries", { query, signal }), limit)
      )
      yield* printRows(found, columns, how, "no deliveries")
    },
  ),
).pipe(Command.withDescription("Lists deliveries of all webhooks, newest first"))

const show = Command.make(
  "show",
  { id, json: jsonFlag },
  Effect.fn("cli.deliveries.show")(function* ({ id, json }) {
    const path = "/v1/webhook-deliveries/{delivery_id}"
    yield* printOne(yield* called((api, signal) => api.get(path, { params: { delivery_id: id }, signal })), json)
  }),
).pipe(Command.withDescription("Shows one delivery with its attempts, what was sent and what came back"))

const acts = [
  ["retry", "retried", "Makes the next attempt of a waiting delivery now"],
  ["cancel", "cancelled", "Ends a waiting delivery without another attempt"],
  ["replay", "replayed", "Sends a delivery that has ended again, under the same id"],
] as const

const acting = acts.map(([name, done, description]) =>
  Command.make(
    name,
    { id },
    Effect.fn(`cli.deliveries.${name}`)(function* ({ id }) {
      const path = `/v1/webhook-deliveries/{delivery_id}/${name}` as const
      yield* called((api, signal) => api.post(path, { params: { delivery_id: id }, signal }))
      yield* Console.log(`${id} ${done}`)
    }),
  ).pipe(Command.withDescription(description))
)

export const deliveries = Command.make("deliveries").pipe(
  Command.withDescription("Deliveries to your account's webhooks (BAILIWICK_KEY)"),
  Command.withSubcommands([list, show, ...acting]),
)
