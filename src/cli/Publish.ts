/** `publish SUBJECT FILE`: each line as one message, in order, each acknowledged by the broker before this ends. */
import { Console, Effect, Result, Stream } from "effect"
import { Argument, Command } from "effect/cli"
import { Subject } from "../../schemas/bus/Subject.ts"
import { Bus, type BusError, type BusOutcome } from "../../services/platform/Bus.ts"
import { CliFault, Unsuccessful } from "./CliFault.ts"
import { bus } from "./Instance.ts"
import { fileArgument, linesOf } from "./Lines.ts"
import { printable } from "./Printable.ts"
import * as Progress from "./Progress.ts"
import { messageId } from "./Publish/messageId.ts"

/** Lines whose acks are awaited together. */
const batchSize = 500

const subject = Argument.String("SUBJECT").pipe(
  Argument.withDescription("Where every line goes, such as intake.v1.mail-events.delivered"),
  Argument.filter(Subject.isSubject, () => "dot-separated tokens of A-Za-z0-9_- without wildcards"),
)

// What one line met, all of them will: the broker is away, or no stream takes the subject.
const hopeless = new Set<BusError["reason"]>(["unavailable", "no-stream", "timeout"])
const isHopeless = (outcomes: ReadonlyArray<BusOutcome>) =>
  outcomes.every((outcome) => Result.isFailure(outcome) && hopeless.has(outcome.failure.reason))

const run = Effect.fnUntraced(function* (subject: string, file: string) {
  const bus = yield* Bus
  const progress = yield* Progress.make
  const total = { published: 0, duplicates: 0, failed: 0 }
  const counts = () => `published ${total.published}, duplicates ${total.duplicates}, failed ${total.failed}`

  const settle = Effect.fnUntraced(function* (line: number, outcome: BusOutcome) {
    if (Result.isSuccess(outcome)) total[outcome.success.duplicate ? "duplicates" : "published"]++
    else {
      total.failed++
      yield* progress.clear
      yield* Console.error(`line ${line}: ${printable(outcome.failure.message)}`)
    }
  })

  yield* linesOf(file).pipe(
    Stream.zipWithIndex,
    Stream.filter(([line]) => line.trim() !== ""),
    Stream.grouped(batchSize),
    Stream.runForEach(Effect.fnUntraced(function* (batch) {
      const outcomes = yield* bus.publishAll(batch.map(([data]) => {
        const msgId = messageId(subject, data)
        return { subject, data, ...(msgId === null ? {} : { msgId }) }
      }))
      if (isHopeless(outcomes) && Result.isFailure(outcomes[0]!)) {
        total.failed += batch.length
        const why = printable(outcomes[0].failure.message)
        return yield* new CliFault({
          message: `stopped at line ${batch[0]![1] + 1}, nothing after it went out: ${why}`,
        })
      }
      for (const [i, outcome] of outcomes.entries()) yield* settle(batch[i]![1] + 1, outcome)
      yield* progress.tell(counts())
    })),
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
    command: "cli publish intake.v1.mail-events.delivered events.ndjson",
    description: "Publish email events",
  }]),
)
