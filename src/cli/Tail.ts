/** `tail [SUBJECT]`: prints new messages of the streams, one line each. It changes no state of the broker. */
import { Console, Effect, Latch } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import process from "node:process"
import { covers, followedBy, isPattern } from "../../schemas/bus/SubjectPattern.ts"
import { makeConnection } from "../../services/platform/messaging/Bus/BusConnection.ts"
import { CliFault } from "./CliFault.ts"
import { addressOf } from "../ServerAddress.ts"
import { brokerOf, instance } from "./Instance.ts"
import { printable, printableJson, shortened } from "./EscapeControls.ts"
import { reasonOf } from "./Reason.ts"
import { follow } from "./FollowStream.ts"
import { cliCommand } from "../../services/platform/CommandSpelling.ts"

const payloadLength = 240
const everything = ">"

const subject = Argument.String("SUBJECT").pipe(
  Argument.withDescription("The subjects, wildcards * and > allowed; by default those of every stream"),
  Argument.filter(isPattern, () => "dot-separated tokens of A-Za-z0-9_-, * and a > at the end"),
  Argument.withDefault(everything),
)

const flags = {
  full: Flag.Boolean("full").pipe(
    Flag.withDescription("Prints payloads whole; without it long ones are cut"),
    Flag.withDefault(false),
  ),
  json: Flag.Boolean("json").pipe(
    Flag.withDescription("Prints one JSON object a line: time, stream, subject, payload as it is"),
    Flag.withDefault(false),
  ),
}

interface How {
  readonly full: boolean
  readonly json: boolean
}

interface Message {
  readonly time: Date
  readonly subject: string
  readonly string: () => string
}

const lineOf = (stream: string, { string, subject, time }: Message, { full, json }: How): string => {
  const at = time.toISOString()
  const payload = string()
  if (json) return printableJson({ time: at, stream, subject, payload })
  return `${at} ${stream} ${printable(subject)} ${full ? printable(payload) : shortened(payload, payloadLength)}`
}

const run = Effect.fnUntraced(function* (wanted: string, how: How) {
  const broker = yield* brokerOf(yield* instance)
  const connection = yield* makeConnection(broker)
  const followed = followedBy(wanted)
  if (followed.length === 0) return yield* new CliFault({ message: `no stream takes ${wanted}` })
  yield* connection.get.pipe(Effect.timeoutOrElse({
    duration: "5 seconds",
    orElse: () => Effect.fail(new CliFault({ message: `cannot reach the broker at ${addressOf(broker.url)}` })),
  }))
  yield* Effect.forEach(followed, (one) =>
    Effect.gen(function* () {
      const begun = Latch.makeUnsafe(false)
      let lastReason = ""
      yield* Effect.forkScoped(follow(
        connection,
        one,
        (message) => {
          if (!covers(wanted, message.subject)) return
          const { subject, time } = message
          process.stdout.write(`${lineOf(one.stream, { subject, time, string: () => message.string() }, how)}\n`)
        },
        Effect.sync(() => void begun.openUnsafe()),
        (cause) => {
          const reason = `${one.stream}: ${reasonOf(cause)}; trying again`
          if (reason === lastReason) return Effect.void
          lastReason = reason
          return Console.error(reason)
        },
      ))
      yield* begun.await
    }), { concurrency: "unbounded" })
  yield* Console.error(`following ${followed.map(({ stream }) => stream).join(", ")}; Ctrl-C ends`)
  // Ctrl-C is the only end of this command, and so no failure.
  yield* Effect.sync(() => void (process.exitCode = 0))
  return yield* Effect.never
}, Effect.scoped)

export const tail = Command.make(
  "tail",
  { subject, ...flags },
  Effect.fn("cli.tail")(({ subject, ...how }) => run(subject, how)),
).pipe(
  Command.withDescription("Follows streams, one line a message: time, stream, subject, payload"),
  Command.withExamples([
    { command: cliCommand("tail"), description: "Follow every stream" },
    { command: cliCommand("tail 'webhooks.v1.dead.*'"), description: "Follow dead letters" },
  ]),
)
