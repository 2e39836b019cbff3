import { Clock, Console, Effect, Layer, Option, Stream } from "effect"
import { Command, Flag } from "effect/cli"
import { auditSubject, domainIn } from "../../services/operations/AuditSubject.ts"
import { AuditLog } from "../../services/platform/observability/AuditLog.ts"
import { CliFault } from "./CliFault.ts"
import { database } from "./Instance.ts"
import { printableJson } from "./EscapeControls.ts"
import { sinceFlag } from "./Times.ts"

const subjectOf = Effect.fnUntraced(function* (subject: string) {
  return (yield* auditSubject(subject)) ?? (yield* new CliFault({
    message: `there is no domain ${domainIn(subject)!}: name it as the directory does, or by its id`,
  }))
})

export const audit = Command.make(
  "audit",
  {
    requestId: Flag.String("request-id").pipe(
      Flag.withMetavar("ID"),
      Flag.withDescription("The X-Request-ID of an answer; client:ID where the client chose it, as records show it"),
      Flag.optional,
    ),
    subject: Flag.String("subject").pipe(
      Flag.withMetavar("ID"),
      Flag.withDescription("The subject of the records, such as webhook:ID, transfer:ID or domain:NAME"),
      Flag.optional,
    ),
    since: sinceFlag.pipe(Flag.withDescription("Not before this time, or this long ago"), Flag.optional),
  },
  Effect.fn("cli.audit")(function* ({ requestId, since, subject }) {
    const now = yield* Clock.currentTimeMillis
    const log = yield* AuditLog
    const query = {
      requestId: Option.getOrUndefined(requestId),
      subject: Option.isNone(subject) ? undefined : yield* subjectOf(subject.value),
      since: Option.getOrUndefined(Option.map(since, (at) => at(now))),
    }
    yield* log.read(query).pipe(Stream.runForEach((record) => Console.log(printableJson(record))))
  }, Effect.provide(AuditLog.layer.pipe(Layer.provideMerge(database)))),
).pipe(
  Command.withDescription("Prints redacted audit records as NDJSON, oldest first"),
  Command.withExamples([
    { command: "cli audit --request-id 0199...", description: "The records of one request" },
    { command: "cli audit --since 1h", description: "Everything of the last hour" },
  ]),
)
