/** `webhooks`: the webhooks of an account. */
import { Console, Duration, Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { eventTypes } from "../../../schemas/mail/MailEvent.ts"
import type { EventType, Webhook } from "../../../sdk/client/Client.ts"
import { durationFlag } from "../Times.ts"
import { jsonFlag } from "../JsonFlag.ts"
import { called } from "./CallerApi.ts"
import { events } from "./EventsFlag.ts"
import { listFlags, printOne, printRows } from "../RowOutput.ts"
import { importWebhooks } from "./WebhookImport.ts"
import { secretFlags, secretSettings } from "./WebhookSecrets.ts"
import { cliCommand } from "../../../services/platform/CommandSpelling.ts"

const id = Argument.String("ID").pipe(Argument.withDescription("The webhook's id"))

const url = Flag.String("url").pipe(Flag.withMetavar("URL"), Flag.withDescription("Where events are POSTed to"))

const description = Flag.String("description").pipe(
  Flag.withMetavar("TEXT"),
  Flag.withDescription("What the webhook is for"),
  Flag.optional,
)

const honorRetryAfter = Flag.Boolean("honor-retry-after").pipe(
  Flag.withDescription("Lets Retry-After of a failed answer make the next attempt later"),
  Flag.optional,
)

const rateLimit = Flag.Int("rate-limit").pipe(
  Flag.withMetavar("N"),
  Flag.withDescription("How many deliveries may begin in a second; 0 for any number"),
  Flag.optional,
)

const columns = ({ description, events, health, id, url }: Webhook) => ({ id, health, url, events, description })

const list = Command.make(
  "list",
  {
    ...listFlags,
    paused: Flag.Boolean("paused").pipe(Flag.withDescription("Paused webhooks as well"), Flag.withDefault(false)),
  },
  Effect.fn("cli.webhooks.list")(function* ({ paused, ...how }) {
    const query = paused ? { include_paused: true } : {}
    const webhooks = yield* called((api, signal) => api.get("/v1/webhooks/", { query, signal }))
    yield* printRows(webhooks, columns, how, "no webhooks")
  }),
).pipe(Command.withDescription("Lists webhooks, newest first"))

const show = Command.make(
  "show",
  { id, json: jsonFlag },
  Effect.fn("cli.webhooks.show")(function* ({ id, json }) {
    const path = "/v1/webhooks/{webhook_id}"
    yield* printOne(yield* called((api, signal) => api.get(path, { params: { webhook_id: id }, signal })), json)
  }),
).pipe(Command.withDescription("Shows one webhook, without its secret"))

const create = Command.make(
  "create",
  { url, events, description, honorRetryAfter, rateLimit, ...secretFlags, json: jsonFlag },
  Effect.fn("cli.webhooks.create")(
    function* ({ description, events, honorRetryAfter, json, rateLimit, url, ...files }) {
      const [honor_retry_after, rate_limit] = [Option.getOrNull(honorRetryAfter), Option.getOrNull(rateLimit)]
      const own = yield* secretSettings(files)
      const body = { url, events, description: Option.getOrNull(description), honor_retry_after, rate_limit, ...own }
      yield* printOne(yield* called((api, signal) => api.post("/v1/webhooks/", { body, signal })), json)
    },
  ),
).pipe(
  Command.withDescription("Creates a webhook and prints it with its secret, which is shown once"),
  Command.withExamples([{
    command: cliCommand("webhooks create --url https://example.com/hook --events email.delivered,email.bounced"),
    description: "Take two types of events",
  }]),
)

interface Change extends Effect.Success<ReturnType<typeof secretSettings>> {
  readonly url?: string
  readonly events?: ReadonlyArray<EventType>
  readonly description?: string
  readonly honor_retry_after?: boolean
  readonly rate_limit?: number
  readonly is_active?: boolean
}

const changed = Effect.fnUntraced(function* (id: string, json: boolean, body: Change) {
  const path = "/v1/webhooks/{webhook_id}"
  yield* printOne(yield* called((api, signal) => api.patch(path, { params: { webhook_id: id }, body, signal })), json)
})

const update = Command.make(
  "update",
  {
    id,
    url: Flag.optional(url),
    events: Flag.optional(events),
    description,
    honorRetryAfter,
    rateLimit,
    ...secretFlags,
    json: jsonFlag,
  },
  Effect.fn("cli.webhooks.update")(function* (
    { description, events, honorRetryAfter, id, json, rateLimit, url, ...files },
  ) {
    yield* changed(id, json, {
      ...(yield* secretSettings(files)),
      ...Option.match(url, { onNone: () => ({}), onSome: (url) => ({ url }) }),
      ...Option.match(events, { onNone: () => ({}), onSome: (events) => ({ events }) }),
      ...Option.match(description, { onNone: () => ({}), onSome: (description) => ({ description }) }),
      ...Option.match(honorRetryAfter, { onNone: () => ({}), onSome: (honor_retry_after) => ({ honor_retry_after }) }),
      ...Option.match(rateLimit, { onNone: () => ({}), onSome: (rate_limit) => ({ rate_limit }) }),
    })
  }),
).pipe(Command.withDescription("Changes what is given, and nothing else"))

const pause = Command.make(
  "pause",
  { id, json: jsonFlag },
  Effect.fn("cli.webhooks.pause")(({ id, json }) => changed(id, json, { is_active: false })),
).pipe(Command.withDescription("Pauses a webhook"))

const resume = Command.make(
  "resume",
  { id, json: jsonFlag },
  Effect.fn("cli.webhooks.resume")(({ id, json }) => changed(id, json, { is_active: true })),
).pipe(Command.withDescription("Resumes a paused webhook"))

const remove = Command.make(
  "delete",
  { id },
  Effect.fn("cli.webhooks.delete")(function* ({ id }) {
    yield* called((api, signal) => api.delete("/v1/webhooks/{webhook_id}", { params: { webhook_id: id }, signal }))
    yield* Console.log(`${id} deleted`)
  }),
).pipe(Command.withDescription("Deletes a webhook; its waiting deliveries are cancelled"))

const test = Command.make(
  "test",
  {
    id,
    event: Flag.Literals("event", eventTypes).pipe(
      Flag.withDescription("The type of the sample (default email.delivered)"),
      Flag.withDefault("email.delivered" as const),
    ),
  },
  Effect.fn("cli.webhooks.test")(function* ({ event, id }) {
    const path = "/v1/webhooks/{webhook_id}/test"
    const { url } = yield* called((api, signal) =>
      api.post(path, { params: { webhook_id: id }, body: { event }, signal })
    )
    yield* Console.log(`a sample of ${event} is on its way to ${url}`)
  }),
).pipe(Command.withDescription("Sends a sample event"))

const rotateSecret = Command.make(
  "rotate-secret",
  {
    id,
    overlap: durationFlag("overlap").pipe(
      Flag.withDescription("How long the old secret signs beside the new one"),
      Flag.optional,
    ),
    json: jsonFlag,
  },
  Effect.fn("cli.webhooks.rotate-secret")(function* ({ id, json, overlap }) {
    const path = "/v1/webhooks/{webhook_id}/rotate-secret"
    const body = Option.match(overlap, {
      onNone: () => ({}),
      onSome: (time) => ({ overlap_seconds: Math.round(Duration.toSeconds(time)) }),
    })
    yield* printOne(
      yield* called((api, signal) => api.post(path, { params: { webhook_id: id }, body, signal })),
      json,
    )
  }),
).pipe(Command.withDescription("Gives a webhook a new secret and prints it, once"))

export const webhooks = Command.make("webhooks").pipe(
  Command.withDescription("Webhooks of your account (BAILIWICK_KEY)"),
  Command.withSubcommands([list, show, create, update, pause, resume, remove, test, rotateSecret, importWebhooks]),
)
