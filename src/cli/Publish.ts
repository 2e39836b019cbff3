/**
 * `publish SUBJECT FILE`: publishes each line as one message, in order, and waits for the broker's acknowledgements.
 */
import { Array, Console, Effect, Result, Stream } from "effect"
import { Argument, Command } from "effect/cli"
import { Subject } from "../../schemas/bus/Subject.ts"
import { Bus, type BusError, type BusOutcome } from "../../services/platform/messaging/Bus.ts"
import { CliFault, Unsuccessful } from "./CliFault.ts"
import { bus } from "./Instance.ts"
import { fileArgument, linesOf } from "./ReadLines.ts"
import { printable } from "./EscapeControls.ts"
import * as Progress from "./Progress.ts"
import { messageId } from "./MessageId.ts"
import { cliCommand } from "../../services/platform/CommandSpelling.ts"

/** The most lines whose acknowledgements are awaited together; lines that are there do not wait for more. */
const batchSize = 500

const subject = Argument.String("SUBJECT").pipe(
  Argument.withDescription("The subject of every line, such as intake.v1.mail-events.delivered"),
  Argument.filter(Subject.isSubject, () => "dot-separated tokens of A-Za-z0-9_- without wildcards"),
)

// Faults that every line would meet: the broker is away, or no stream takes the subject.
const hopeless = new Set<BusError["reason"]>(["unavailable", "no-stream", "timeout"])
const wasRefused = (outcome: BusOutcome) => Result.isFailure(outcome) && outcome.failure.reason === "no-stream"
const isHopeless = (outcomes: ReadonlyArray<BusOutcome>) =>
  outcomes.every((outcome) => Result.isFailure(outcome) && hopeless.has(outcome.failure.reason))

const run = Effect.fnUntraced(function* (subject: string, file: string) {
  const bus = yield* Bus
  const progress = yield* Progress.make
  // The outcome of lines under way is unknown until they are acknowledged: where the command is interrupted, the broker
  // may have them.
  const total = { published: 0, duplicates: 0, failed: 0, unknown: 0 }
  const counts = () =>
    `published ${total.published}, duplicates ${total.duplicates}, failed ${total.failed}` +
    (total.unknown > 0 ? `, unknown ${total.unknown}` : "")

  const settle = Effect.fnUntraced(function* (line: number, outcome: BusOutcome) {
    if (Result.isSuccess(outcome)) total[outcome.success.duplicate ? "duplicates" : "published"]++
    else {
      total.failed++
      yield* progress.clear
      yield* Console.error(`line ${line}: ${printable(outcome.failure.message)}`)
    }
  })

  const publish = Effect.fnUntraced(function* (batch: ReadonlyArray<readonly [data: string, at: number]>) {
    const [first, last] = [batch[0]![1] + 1, batch.at(-1)![1] + 1]
    total.unknown = batch.length
    const outcomes = yield* bus.publishAll(batch.map(([data]) => {
      const msgId = messageId(subject, data)
      return { subject, data, ...(msgId === null ? {} : { msgId }) }
    }))
    if (isHopeless(outcomes) && Result.isFailure(outcomes[0]!)) {
      const why = printable(outcomes[0].failure.message)
      if (!outcomes.every(wasRefused)) {
        const message =
          `stopped after line ${last}: it is not known whether lines ${first} to ${last} were published: ${why}`
        return yield* new CliFault({ message })
      }
      total.unknown = 0
      total.failed += batch.length
      return yield* new CliFault({ message: `stopped at line ${first}, no line from there on was published: ${why}` })
    }
    total.unknown = 0
    for (const [i, outcome] of outcomes.entries()) yield* settle(batch[i]![1] + 1, outcome)
    yield* progress.tell(counts())
  })

  yield* linesOf(file).pipe(
    Stream.zipWithIndex,
    Stream.filter(([line]) => line.trim() !== ""),
    Stream.runForEachArray((some) => Effect.forEach(Array.chunksOf(some, batchSize), publish, { discard: true })),
    Effect.ensuring(Effect.suspend(() => Effect.andThen(progress.clear, Console.log(counts())))),
  )
  if (total.failed > 0) return yield* new Unsuccessful()
})

export const publish = Command.make(
  "publish",
  { subject, file: fileArgument },
  Effect.fn("cli.publish")(({ file, subject }) => run(subject, file), Effect.provide(bus)),
).pipe(
  Command.withDescription("Publishes each line to the bus and waits for the broker's acknowledgements"),
  Command.withExamples([{
    command: cliCommand("publish intake.v1.mail-events.delivered events.ndjson"),
    description: "Publish email events",
  }]),
)
