/** `doctor`: runs checks and prints one line for each: `ok`, or what to do. */
import { Clock, Console, Effect, Option, References } from "effect"
import { Command } from "effect/cli"
import { Bus } from "../../services/platform/messaging/Bus.ts"
import { Unsuccessful } from "./CliFault.ts"
import { brokerChecks } from "../doctor/BrokerChecks.ts"
import { checked, databaseFound, settingsFound } from "../doctor/Examination.ts"
import { fail, type Finding, lineOf, ok, warn } from "../doctor/Finding.ts"
import { type Since, sinceOf, timeOf } from "../doctor/FindingTimes.ts"
import { configOf, databaseAt, databaseUrls, type Instance, instance, natsUrl } from "./Instance.ts"
import { printable, printableJson } from "./EscapeControls.ts"
import { jsonFlag } from "./JsonFlag.ts"
import { startCommand } from "../../services/platform/CommandSpelling.ts"

const process = ({ config, runtime }: Instance): Finding =>
  Option.match(runtime, {
    onNone: () => warn("instance", `none runs with BAILIWICK_HOME=${config.home}`, `type "${startCommand}"`),
    onSome: ({ http_url, pid }) => ok("instance", `process ${pid}${http_url === "" ? "" : ` on ${http_url}`}`),
  })

const databaseFindings = (found: Instance) =>
  checked(
    "database",
    Effect.flatMap(databaseUrls(found), (urls) => Effect.provide(databaseFound(found.config), databaseAt(urls))),
  )

const brokerFindings = (found: Instance) =>
  Option.match(natsUrl(found), {
    onNone: () =>
      Effect.succeed([fail("broker", "NATS_URL is not set and no instance runs", `type "${startCommand}"`)]),
    onSome: (url) => checked("broker", brokerChecks(url).pipe(Effect.provide(Bus.layer(configOf(found, url))))),
  })

/** Since when findings are not fine; empty while the database is away, which is a finding of its own. */
const times = (found: Instance, findings: ReadonlyArray<Finding>) =>
  Effect.flatMap(databaseUrls(found), (urls) => Effect.provide(sinceOf(findings), databaseAt(urls))).pipe(
    Effect.catch((): Effect.Effect<Since> => Effect.succeed(new Map())),
  )

const timed = (findings: ReadonlyArray<Finding>, since: Since) =>
  findings.map((finding) => ({ ...finding, since: timeOf(since, finding) }))

/** Only of a finding of an earlier run: for a new one the time would be now. */
const seenBefore = (since: string | null, now: number) =>
  since === null || now - Date.parse(since) < 60_000 ? "" : ` (since ${since})`

const examine = Effect.gen(function* () {
  const found = yield* Effect.result(instance)
  if (found._tag === "Failure") {
    return timed(found.failure.message.split("\n").map((line) => fail("configuration", line)), new Map())
  }
  const [database, broker] = yield* Effect.all([databaseFindings(found.success), brokerFindings(found.success)], {
    concurrency: 2,
  })
  const findings = [...settingsFound(found.success.config), process(found.success), ...database, ...broker]
  return timed(findings, yield* times(found.success, findings))
}).pipe(Effect.provideService(References.MinimumLogLevel, "None"))

export const doctor = Command.make(
  "doctor",
  { json: jsonFlag },
  Effect.fn("cli.doctor")(function* ({ json }) {
    const findings = yield* examine
    const now = yield* Clock.currentTimeMillis
    for (const finding of findings) {
      yield* Console.log(json ? printableJson(finding) : printable(lineOf(finding) + seenBefore(finding.since, now)))
    }
    if (findings.some(({ level }) => level === "FAIL")) return yield* new Unsuccessful()
  }),
).pipe(Command.withDescription("Checks configuration, database, schema, keys, broker and streams; says what to do"))
