/**
 * `tail [SUBJECT]`: what arrives on the streams from now on, as the broker hands it to every subscriber. It reads no
 * history and holds no consumer, so following changes nothing and leaves nothing behind.
 */
import { Clock, Console, Effect, Latch } from "effect"
import { Argument, Command } from "effect/cli"
import process from "node:process"
import { streamNames, Streams } from "../../schemas/bus/Streams.ts"
import { Bus } from "../../services/platform/Bus.ts"
import { bus } from "./Instance.ts"
import { printable, shortened } from "./Printable.ts"
import { covers, isPattern } from "./Tail/pattern.ts"

const payloadLength = 240

const subjects = streamNames.flatMap((stream) => Streams[stream].subjects.map((subject) => ({ stream, subject })))

const subject = Argument.String("SUBJECT").pipe(
  Argument.withDescription("Which subjects, wildcards * and > allowed; those of all streams without it"),
  Argument.filter(isPattern, () => "dot-separated tokens of A-Za-z0-9_-, * and a > at the end"),
  Argument.withDefault(">"),
)

const follow = Effect.fnUntraced(function* (wanted: string) {
  const bus = yield* Bus
  const clock = yield* Clock.Clock
  const listener = (data: string, subject: string) => {
    const stream = subjects.find((known) => covers(known.subject, subject))?.stream
    if (stream === undefined || !covers(wanted, subject)) return
    const time = new Date(clock.currentTimeMillisUnsafe()).toISOString()
    process.stdout.write(`${time} ${stream} ${printable(subject)} ${shortened(data, payloadLength)}\n`)
  }
  for (const { subject } of subjects) yield* bus.subscribeCore(subject, listener)
  yield* subscribed
  yield* Console.error(`following ${wanted === ">" ? "every stream" : wanted}, Ctrl-C ends`)
  // Nothing else ends it.
  yield* Effect.sync(() => void (process.exitCode = 0))
  return yield* Effect.never
})

/** The broker handles one connection's words in order: once it echoes ours, what was subscribed before is, too. */
const subscribed = Effect.gen(function* () {
  const bus = yield* Bus
  const echo = `bailiwick.tail.${crypto.randomUUID()}`
  const heard = Latch.makeUnsafe(false)
  yield* bus.subscribeCore(echo, () => heard.openUnsafe())
  yield* bus.publishCore(echo, "").pipe(
    Effect.andThen(Effect.sleep("50 millis")),
    Effect.forever,
    Effect.raceFirst(heard.await),
  )
}).pipe(Effect.scoped)

export const tail = Command.make(
  "tail",
  { subject },
  Effect.fn("cli.tail")(({ subject }) => Effect.scoped(follow(subject)), Effect.provide(bus)),
).pipe(
  Command.withDescription("Follows streams, one line a message: time, stream, subject, payload"),
  Command.withExamples([
    { command: "cli tail", description: "Follow every stream" },
    { command: "cli tail 'webhooks.v1.dead.*'", description: "Follow dead letters" },
  ]),
)
