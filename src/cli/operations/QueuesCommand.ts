/** `queues`: what waits in the program, and the webhooks for which the most waits. */
import { Console, Effect, Layer } from "effect"
import { Command } from "effect/cli"
import { Queues } from "../../../services/operations/Queues.ts"
import { Roles } from "../../../services/people/Roles.ts"
import { database } from "../Instance.ts"
import { listFlags, printRows } from "../RowOutput.ts"

const services = Queues.layer.pipe(Layer.provide(Roles.layer), Layer.provideMerge(database))

export const queues = Command.make(
  "queues",
  listFlags,
  Effect.fn("cli.queues")(function* (how) {
    const { backlogs, queues } = yield* (yield* Queues).observed
    const columns = ({ capped, depth, due, failing, leased, oldest_due_at, queue }: (typeof queues.items)[number]) => ({
      ...{ queue, waiting: capped ? `${depth} or more` : depth, due },
      ...{ oldest_due_at, under_way: leased, failed_before: failing },
    })
    yield* printRows(queues.items, columns, how, "no queues")
    if (!how.json) yield* Console.log("")
    yield* printRows(
      backlogs.items,
      ({ account_id, depth, leased, oldest_due_at, paused, retries, url, webhook_id }) => ({
        ...{ webhook_id, account_id, waiting: depth, retries, under_way: leased, oldest_due_at },
        ...{ paused, url: url ?? "deleted" },
      }),
      how,
      "no delivery waits for any webhook",
    )
  }, Effect.provide(services)),
).pipe(Command.withDescription("Lists the program's queues, and the 20 webhooks with the most deliveries that wait"))
