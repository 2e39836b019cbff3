/**
 * `webhooks import FILE`: the endpoints of an export of Svix or Convoy as webhooks of the account, with their secrets. A
 * webhook is made for an endpoint whose URL none has yet, so the command may be repeated, also after it was cut off. Secrets
 * come from the file alone and are not printed.
 */
import { shownUrl } from "../../../services/webhooks/Webhooks/ShownUrl.ts"
import { Clock, Console, Effect, Option, Result, Stream } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { cliCommand } from "../../../services/platform/CommandSpelling.ts"
import { type Client, Problem, type Webhook } from "../../../sdk/client/Client.ts"
import { CliFault, Unsuccessful } from "../CliFault.ts"
import { printable } from "../EscapeControls.ts"
import { linesOf, mostCharacters } from "../ReadLines.ts"
import { api, called, faultOf } from "./CallerApi.ts"
import { events } from "./EventsFlag.ts"
import { convoyExport } from "./import/ConvoyExport.ts"
import { endpointsOf, type FileEndpoint } from "./import/EndpointFile.ts"
import { svixExport } from "./import/SvixExport.ts"
import { listFlags, printRows } from "../RowOutput.ts"

const formats = { svix: svixExport, convoy: convoyExport }

/** A thousand endpoints take less than `mostCharacters`. */
const read = Effect.fnUntraced(function* (file: string) {
  const lines: Array<string> = []
  let length = 0
  yield* Stream.runForEach(linesOf(file), (line) => {
    length += line.length + 1
    lines.push(line)
    return length <= mostCharacters
      ? Effect.void
      : Effect.fail(new CliFault({ message: `${file}: is longer than ${mostCharacters} characters` }))
  })
  return lines.join("\n")
})

interface Outcome {
  readonly source_id: string
  readonly url: string
  /** `absent`: it would be made. */
  readonly result: "made" | "exists" | "absent" | "refused"
  readonly paused: boolean
  readonly webhook_id: string | null
  readonly notes: ReadonlyArray<string>
  /** Why it is refused, in lines. */
  readonly refusal: ReadonlyArray<string>
}

/** How many webhooks of the account have each URL, and are not yet an endpoint's of the file. */
const byUrl = (webhooks: ReadonlyArray<Webhook>) => {
  const ids = new Map<string, Array<string>>()
  for (const { id, url } of [...webhooks].reverse()) ids.set(url, [...(ids.get(url) ?? []), id])
  return (url: string) => ids.get(url)?.shift()
}

/** Makes one webhook; a refusal of it is an outcome, anything else ends the command. */
const make = (client: Client, webhook: FileEndpoint["webhook"]) =>
  Effect.tryPromise({
    try: (signal) => client.post("/v1/webhooks/", { body: webhook, signal }),
    catch: (error) => error,
  }).pipe(
    Effect.map(({ id }) => ({ result: "made" as const, webhook_id: id, refusal: [] })),
    Effect.catch((error) =>
      error instanceof Problem && (error.status === 409 || error.status === 422)
        ? Effect.succeed({ result: "refused" as const, webhook_id: null, refusal: faultOf(error).message.split("\n") })
        : Effect.fail(faultOf(error))
    ),
  )

/** Adds to `outcomes` as it goes: what was made is told also where the command ends early. */
const imported = Effect.fnUntraced(function* (
  endpoints: ReadonlyArray<FileEndpoint>,
  dryRun: boolean,
  outcomes: Array<Outcome>,
) {
  const client = yield* api
  const existing = byUrl(
    yield* called((one, signal) => one.get("/v1/webhooks/", { query: { include_paused: true }, signal })),
  )
  for (const { id, notes, webhook } of endpoints) {
    const known = existing(webhook.url)
    const shown = { source_id: id, url: shownUrl(webhook.url), paused: webhook.is_active === false, notes, refusal: [] }
    if (known !== undefined) outcomes.push({ ...shown, result: "exists", webhook_id: known, notes: [] })
    else if (dryRun) outcomes.push({ ...shown, result: "absent", webhook_id: null })
    else outcomes.push({ ...shown, ...(yield* make(client, webhook)) })
  }
})

const columns = ({ notes, paused, result, source_id, url, webhook_id }: Outcome) => ({
  endpoint: source_id,
  result: result === "made" && paused ? "made, paused" : result,
  webhook: webhook_id,
  url,
  notes: notes.join("; "),
})

const flags = {
  file: Argument.String("FILE").pipe(Argument.withDescription("The export; - reads standard input")),
  from: Flag.Literals("from", ["svix", "convoy"]).pipe(Flag.withDescription("Whose export it is")),
  events: events.pipe(
    Flag.withDescription("What every webhook takes, in place of what the file says, for example email.bounced"),
    Flag.optional,
  ),
  paused: Flag.Boolean("paused").pipe(
    Flag.withDescription("Every webhook begins paused: events wait to be replayed (status missed) once it is resumed"),
    Flag.withDefault(false),
  ),
  dryRun: Flag.Boolean("dry-run").pipe(
    Flag.withDescription("Says what would be made, and makes nothing"),
    Flag.withDefault(false),
  ),
  ...listFlags,
}

export const importWebhooks = Command.make(
  "import",
  flags,
  Effect.fn("cli.webhooks.import")(function* ({ dryRun, events, file, from, paused, ...how }) {
    const nowMillis = yield* Clock.currentTimeMillis
    const options = { events: Option.getOrUndefined(events), paused, nowMillis }
    const endpoints = endpointsOf(yield* read(file), formats[from], options)
    if (Result.isFailure(endpoints)) {
      for (const { endpoint, message } of endpoints.failure) {
        yield* Console.error(printable(`${endpoint ?? file}: ${message}`))
      }
      return yield* new Unsuccessful()
    }
    const outcomes: Array<Outcome> = []
    yield* imported(endpoints.success, dryRun, outcomes).pipe(
      Effect.ensuring(
        Effect.suspend(() => outcomes.length === 0 ? Effect.void : printRows(outcomes, columns, how, "no endpoints")),
      ),
    )
    const refused = outcomes.flatMap(({ refusal, source_id }) => refusal.map((line) => `${source_id}: ${line.trim()}`))
    for (const line of refused) yield* Console.error(printable(line))
    if (refused.length > 0) return yield* new Unsuccessful()
  }),
).pipe(
  Command.withDescription(
    "Makes the endpoints of a Svix or Convoy export webhooks, with their secrets; those whose URL a webhook has are left alone",
  ),
  Command.withExamples([
    {
      command: cliCommand("webhooks import endpoints.json --from svix --dry-run"),
      description: "See what would be made",
    },
    {
      command: cliCommand("webhooks import - --from convoy --paused"),
      description: "Make them paused, of standard input",
    },
  ]),
)
