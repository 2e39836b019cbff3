import { Clock, Console, Effect, Layer, Option, Stream } from "effect"
import { Command, Flag } from "effect/cli"
import { auditSubject, domainIn } from "../../services/operations/AuditSubject.ts"
import { AuditLog } from "../../services/platform/observability/AuditLog.ts"
import { CliFault } from "./CliFault.ts"
import { database } from "./Instance.ts"
import { printableJson } from "./EscapeControls.ts"
import { momentFlag } from "./Times.ts"
import { cliCommand } from "../../services/platform/CommandSpelling.ts"

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
    actor: Flag.String("actor").pipe(
      Flag.withMetavar("ID"),
      Flag.withDescription("The caller or process that acted: account:ID, person:ID, operator:NAME or system"),
      Flag.optional,
    ),
    action: Flag.String("action").pipe(
      Flag.withMetavar("NAME"),
      Flag.withDescription("The action, such as webhook.created or request.failed"),
      Flag.optional,
    ),
    outcome: Flag.Literals("outcome", ["done", "refused", "failed"]).pipe(
      Flag.withDescription("How it ended"),
      Flag.optional,
    ),
    code: Flag.String("code").pipe(
      Flag.withMetavar("CODE"),
      Flag.withDescription("The problem's code in the answer, such as role_required"),
      Flag.optional,
    ),
    since: momentFlag("since").pipe(Flag.withDescription("Not before this time, or this long ago"), Flag.optional),
    until: momentFlag("until").pipe(Flag.withDescription("Before this time, or this long ago"), Flag.optional),
    json: Flag.Boolean("json").pipe(
      Flag.withDescription("Changes nothing: it prints JSON anyway"),
      Flag.withDefault(false),
    ),
  },
  Effect.fn("cli.audit")(function* ({ requestId, since, subject, until, ...exact }) {
    const now = yield* Clock.currentTimeMillis
    const log = yield* AuditLog
    const moment = (given: Option.Option<(now: number) => number>) =>
      Option.getOrUndefined(Option.map(given, (at) => at(now)))
    const filter = {
      action: Option.getOrUndefined(exact.action),
      actor: Option.getOrUndefined(exact.actor),
      code: Option.getOrUndefined(exact.code),
      outcome: Option.getOrUndefined(exact.outcome),
      requestId: Option.getOrUndefined(requestId),
      subject: Option.isNone(subject) ? undefined : yield* subjectOf(subject.value),
      since: moment(since),
      until: moment(until),
    }
    yield* log.read(filter).pipe(Stream.runForEach((record) => Console.log(printableJson(record))))
  }, Effect.provide(AuditLog.layer.pipe(Layer.provideMerge(database)))),
).pipe(
  Command.withDescription("Prints redacted audit records as NDJSON, oldest first"),
  Command.withExamples([
    { command: cliCommand("audit --request-id 0199..."), description: "The records of one request" },
    { command: cliCommand("audit --since 1h"), description: "Everything of the last hour" },
    {
      command: cliCommand("audit --since 1d --outcome refused --actor person:0199..."),
      description: "What a person was refused",
    },
  ]),
)
