/**
 * `dead-letters`: lists deliveries that failed for good, and sends them again. Operators have no account and no rate
 * limit.
 */
import { Clock, Console, Effect, Layer, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { AccountId, DeliveryId, WebhookId } from "../../schemas/BrandedIds.ts"
import { eventTypes } from "../../schemas/mail/MailEvent.ts"
import { isUuid } from "../../schemas/Wire.ts"
import { Audit } from "../../services/platform/observability/Audit.ts"
import { WakeUps } from "../../services/platform/messaging/WakeUps.ts"
import { Jobs } from "../../services/platform/messaging/Jobs.ts"
import { RateLimits } from "../../services/platform/security/RateLimits.ts"
import type { LetterFilter, PagedLetter } from "../../services/webhooks/DeadLetterPages.ts"
import { type Acting, DeadLetters, type LetterSpan } from "../../services/webhooks/DeadLetters.ts"
import { Replays } from "../../services/webhooks/Replays.ts"
import { CliFault, Unsuccessful } from "./CliFault.ts"
import { busIfKnown, database } from "./Instance.ts"
import { printable, printableJson } from "./EscapeControls.ts"
import { jsonFlag } from "./JsonFlag.ts"
import { asFlag, operatorNamed } from "./OperatorName.ts"
import * as Progress from "./Progress.ts"
import { momentFlag } from "./Times.ts"
import { cliCommand } from "../../services/platform/CommandSpelling.ts"

const services = DeadLetters.layer.pipe(
  Layer.provideMerge(Replays.layer),
  Layer.provideMerge(Layer.mergeAll(Jobs.layer, RateLimits.layer)),
  Layer.provideMerge(WakeUps.layer),
  Layer.provideMerge(busIfKnown),
  Layer.provideMerge(Audit.layer),
  Layer.provideMerge(database),
)

const webhook = Flag.String("webhook").pipe(
  Flag.withMetavar("ID"),
  Flag.withDescription("Of this webhook only"),
  Flag.filter(isUuid, () => "a UUID, the id of a webhook"),
  Flag.map((text) => WebhookId.make(text)),
  Flag.optional,
)

/** The newest that match. A page that a condition leaves short is not the end. */
const newest = Effect.fnUntraced(function* (filter: LetterFilter, limit: number) {
  const { list } = yield* DeadLetters
  const found: Array<PagedLetter> = []
  let after: string | undefined
  do {
    const page = yield* list(filter, limit - found.length, after)
    found.push(...page.letters)
    after = page.nextAfterId ?? undefined
  } while (after !== undefined && found.length < limit)
  return found
})

const list = Command.make(
  "list",
  {
    webhook,
    account: Flag.String("account").pipe(
      Flag.withMetavar("ID"),
      Flag.withDescription("Of this account only"),
      Flag.filter(isUuid, () => "a UUID, the id of an account"),
      Flag.map((text) => AccountId.make(text)),
      Flag.optional,
    ),
    event: Flag.String("event").pipe(
      Flag.withMetavar("TYPE"),
      Flag.withDescription("Of this type only, such as email.bounced"),
      Flag.optional,
    ),
    since: momentFlag("since").pipe(
      Flag.withDescription("Deliveries not older than this time, or not longer ago than this"),
      Flag.optional,
    ),
    limit: Flag.Int("limit").pipe(
      Flag.withDescription("The most to list, newest first (default 50)"),
      Flag.filter((n) => n >= 1 && n <= 10_000, () => "a number from 1 to 10000"),
      Flag.withDefault(50),
    ),
    json: jsonFlag,
  },
  Effect.fn("cli.dead-letters.list")(function* ({ account, event, json, limit, since, webhook }) {
    const now = yield* Clock.currentTimeMillis
    const letters = yield* newest({
      accountId: Option.getOrUndefined(account),
      webhookId: Option.getOrUndefined(webhook),
      eventType: Option.getOrUndefined(event),
      since: Option.getOrUndefined(Option.map(since, (at) => at(now))),
    }, limit)
    if (json) return yield* Effect.forEach(letters, (one) => Console.log(printableJson(one)), { discard: true })
    for (const letter of letters) {
      const last = letter.response_status ?? letter.error ?? "no answer"
      const at = letter.died_at.toISOString()
      yield* Console.log(
        printable(
          `${letter.delivery_id} ${at} webhook ${letter.webhook_id} ${letter.event_type} ${last} ${
            letter.endpoint_url ?? "-"
          }`,
        ),
      )
    }
    if (letters.length === 0) yield* Console.error("no dead letters")
  }, Effect.provide(services)),
).pipe(Command.withDescription("One line each: delivery, when it died, webhook, event, last answer, URL"))

const replayOne = Effect.fnUntraced(function* (id: string, by: Acting) {
  const outcome = isUuid(id) ? yield* (yield* DeadLetters).replayOne(DeliveryId.make(id), by) : "unknown"
  yield* outcome === "replayed" ? Console.log(`${id} replayed`) : Console.error(
    `${printable(id)} ${outcome === "unknown" ? "is no dead letter" : "cannot be sent: its webhook was deleted"}`,
  )
  return outcome === "replayed"
})

const replayMany = Effect.fnUntraced(function* (webhookId: WebhookId, span: Omit<LetterSpan, "until">, by: Acting) {
  const progress = yield* Progress.make
  const outcome = yield* (yield* DeadLetters).replaySince(
    webhookId,
    span,
    by,
    (done) => progress.tell(`replayed ${done}`),
  ).pipe(Effect.ensuring(progress.clear))
  if (outcome === "gone") return yield* new CliFault({ message: `there is no webhook ${webhookId}, or it was deleted` })
  yield* Console.log(`replayed ${outcome}`)
})

const wrong = new CliFault({
  message: "name dead letters by ID, or a webhook's by --webhook ID --since T, of one type by --event TYPE",
})

const replay = Command.make(
  "replay",
  {
    as: asFlag,
    ids: Argument.String("ID").pipe(Argument.withDescription("Ids of deliveries"), Argument.variadic()),
    webhook,
    since: momentFlag("since").pipe(
      Flag.withDescription("Events not older than this time, or not longer ago than this"),
      Flag.optional,
    ),
    event: Flag.Literals("event", eventTypes).pipe(
      Flag.withMetavar("TYPE"),
      Flag.withDescription("Of this type only, such as email.bounced"),
      Flag.optional,
    ),
  },
  Effect.fn("cli.dead-letters.replay")(function* ({ as, event, ids, since, webhook }) {
    const by = { actor: operatorNamed(as), details: {} }
    if (Option.isSome(webhook) && Option.isSome(since) && ids.length === 0) {
      const span = { since: since.value(yield* Clock.currentTimeMillis), eventType: Option.getOrUndefined(event) }
      return yield* replayMany(webhook.value, span, by).pipe(Effect.provide(services))
    }
    const many = Option.isSome(webhook) || Option.isSome(since) || Option.isSome(event)
    if (many || ids.length === 0) return yield* wrong
    const replayed = yield* Effect.forEach(ids, (id) => replayOne(id, by)).pipe(Effect.provide(services))
    if (replayed.includes(false)) return yield* new Unsuccessful()
  }),
).pipe(
  Command.withDescription("Sends dead letters again: a new cycle of attempts under the same delivery id"),
  Command.withExamples([
    { command: cliCommand("dead-letters replay 0199..."), description: "One dead letter" },
    { command: cliCommand("dead-letters replay --webhook 0199... --since 24h"), description: "A webhook's of one day" },
  ]),
)

export const deadLetters = Command.make("dead-letters").pipe(
  Command.withDescription("Deliveries that failed for good"),
  Command.withSubcommands([list, replay]),
)
