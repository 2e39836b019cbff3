/** `queues`: the program's queues, the webhooks with the longest ones, and an operator's commands on a webhook's queue. */
import { Console, Effect, Layer } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import type { SqlError } from "effect/sql"
import { WebhookId } from "../../../schemas/BrandedIds.ts"
import { isUuid } from "../../../schemas/Wire.ts"
import { Notifications } from "../../../services/notifications/Notifications.ts"
import { Queues } from "../../../services/operations/Queues.ts"
import { Roles } from "../../../services/people/Roles.ts"
import { type InTransaction, run } from "../../../services/platform/database/UnitOfWork.ts"
import { Mails } from "../../../services/platform/mail/Mails.ts"
import { Outbox } from "../../../services/platform/messaging/Outbox.ts"
import { WakeUps } from "../../../services/platform/messaging/WakeUps.ts"
import { Audit } from "../../../services/platform/observability/Audit.ts"
import { WebhookHolds } from "../../../services/webhooks/WebhookHolds.ts"
import { CliFault } from "../CliFault.ts"
import { busIfKnown, database } from "../Instance.ts"
import { asFlag, operatorNamed } from "../OperatorName.ts"
import { listFlags, printRows } from "../RowOutput.ts"

const services = Queues.layer.pipe(Layer.provide(Roles.layer), Layer.provideMerge(database))

const holds = WebhookHolds.layer.pipe(
  Layer.provideMerge(Notifications.layer),
  Layer.provide(Mails.layer),
  Layer.provide(Outbox.layer),
  Layer.provideMerge(WakeUps.layer),
  Layer.provideMerge(busIfKnown),
  Layer.provideMerge(Audit.layer),
  Layer.provideMerge(database),
)

const done = { pause: "paused", resume: "resumed", kick: "kicked" } as const

const command = (what: keyof typeof done, description: string) =>
  Command.make(
    what,
    {
      as: asFlag,
      id: Argument.String("ID").pipe(
        Argument.withDescription("The webhook"),
        Argument.filter(isUuid, () => "a UUID, the id of a webhook"),
        Argument.map((id) => WebhookId.make(id)),
      ),
      reason: Flag.String("reason").pipe(
        Flag.withDescription("Why, for the audit: 8 to 500 characters"),
        Flag.filter(
          (text) => [...text].length >= 8 && [...text].length <= 500,
          () => "a reason of 8 to 500 characters",
        ),
      ),
    },
    Effect.fn(`cli.queues.${what}`)(function* ({ as, id, reason }) {
      const by = { actor: operatorNamed(as), details: { reason } }
      const doing: Effect.Effect<object | string | null, SqlError.SqlError, InTransaction> = (yield* WebhookHolds)
        [what](id, by)
      const outcome = yield* run(doing).pipe(
        Effect.catchTag("DependencyUnavailable", () => new CliFault({ message: "the database is busy: try again" })),
      )
      if (outcome === null) return yield* new CliFault({ message: `there is no webhook ${id}, or it was deleted` })
      if (typeof outcome === "string") {
        return yield* new CliFault({ message: `webhook ${id} is ${outcome.replaceAll("_", " ")}` })
      }
      yield* Console.log(`${id} ${done[what]}${"deliveries" in outcome ? `, due now: ${outcome.deliveries}` : ""}`)
    }, Effect.provide(holds)),
  ).pipe(Command.withDescription(description))

export const queues = Command.make(
  "queues",
  listFlags,
  Effect.fn("cli.queues")(function* (how) {
    const { backlogs, queues } = yield* (yield* Queues).observed
    const columns = (
      { capped, depth, due, failing, leased, oldest_due_at, per_minute, queue }: (typeof queues.items)[number],
    ) => ({
      queue,
      waiting: capped ? `${depth} or more` : depth,
      due,
      oldest_due_at,
      under_way: leased,
      failed_before: failing,
      last_minute: per_minute,
    })
    yield* printRows(queues.items, columns, how, "no queues")
    if (!how.json) yield* Console.log("")
    yield* printRows(
      backlogs.items,
      ({ account_id, depth, leased, oldest_due_at, paused, retries, url, webhook_id }) => ({
        webhook_id,
        account_id,
        waiting: depth,
        retries,
        under_way: leased,
        oldest_due_at,
        paused,
        url: url ?? "deleted",
      }),
      how,
      "no delivery waits for any webhook",
    )
  }, Effect.provide(services)),
).pipe(
  Command.withDescription("Lists the program's queues, and the 20 webhooks with the most deliveries that wait"),
  Command.withSubcommands([
    command("pause", "Pauses any account's webhook; the account cannot resume it"),
    command("resume", "Resumes a webhook that an operator or the program paused"),
    command("kick", "Makes up to 1,000 deliveries that wait for a webhook due now"),
  ]),
)
