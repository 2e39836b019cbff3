/** `bus`: the broker's streams and how far their consumers are. */
import { Console, Effect } from "effect"
import { Command } from "effect/cli"
import { streamNames } from "../../../schemas/bus/BusStreams.ts"
import { Bus } from "../../../services/platform/messaging/Bus.ts"
import { CliFault } from "../CliFault.ts"
import { bus as connected } from "../Instance.ts"
import { listFlags, printRows } from "../RowOutput.ts"

export const bus = Command.make(
  "bus",
  listFlags,
  Effect.fn("cli.bus")(function* (how) {
    const { report } = yield* Bus
    const found = yield* Effect.forEach(streamNames, report, { concurrency: "unbounded" }).pipe(
      Effect.mapError(({ detail }) => new CliFault({ message: `the broker does not answer: ${detail}` })),
    )
    yield* printRows(
      found,
      ({ bytes, first_at, first_seq, last_at, last_seq, messages, stream }) => ({
        stream,
        messages,
        bytes,
        first_seq,
        last_seq,
        oldest: first_at,
        newest: last_at,
      }),
      how,
      "no streams",
    )
    // As JSON each stream has its consumers.
    if (how.json) return
    yield* Console.log("")
    yield* printRows(
      found.flatMap(({ consumers, stream }) => (consumers ?? []).map((one) => ({ stream, ...one }))),
      ({ ack_pending, behind_since, name, pending, redelivered, stream }) => ({
        stream,
        consumer: name,
        to_come: pending,
        not_acknowledged: ack_pending,
        sent_again: redelivered,
        behind_since,
      }),
      how,
      "no consumers",
    )
  }, Effect.provide(connected)),
).pipe(Command.withDescription("Lists the broker's streams, and how far their consumers are"))
