import { Clock, Console, Effect, Layer, Option, Stream } from "effect"
import { Command, Flag } from "effect/cli"
import { AuditLog } from "../../services/platform/AuditLog.ts"
import { database } from "./Instance.ts"
import { printableJson } from "./Printable.ts"
import { sinceFlag } from "./Times.ts"

export const audit = Command.make(
  "audit",
  {
    requestId: Flag.String("request-id").pipe(
      Flag.withMetavar("ID"),
      Flag.withDescription("The X-Request-ID of an answer"),
      Flag.optional,
    ),
    subject: Flag.String("subject").pipe(
      Flag.withMetavar("ID"),
      Flag.withDescription("On what it was done, such as webhook:ID"),
      Flag.optional,
    ),
    since: sinceFlag.pipe(Flag.withDescription("Not before this time, or this long ago"), Flag.optional),
  },
  Effect.fn("cli.audit")(function* ({ requestId, since, subject }) {
    const now = yield* Clock.currentTimeMillis
    const log = yield* AuditLog
    const query = {
      requestId: Option.getOrUndefined(requestId),
      subject: Option.getOrUndefined(subject),
      since: Option.getOrUndefined(Option.map(since, (at) => at(now))),
    }
    yield* log.read(query).pipe(Stream.runForEach((record) => Console.log(printableJson(record))))
  }, Effect.provide(AuditLog.layer.pipe(Layer.provideMerge(database)))),
).pipe(
  Command.withDescription("Prints redacted audit records as NDJSON, oldest first"),
  Command.withExamples([
    { command: "cli audit --request-id 0199...", description: "What became of one request" },
    { command: "cli audit --since 1h", description: "Everything of the last hour" },
  ]),
)
