/** `doctor`: runs checks and prints one line for each: `ok`, or what to do. */
import { Console, Effect, Option, References } from "effect"
import { Command } from "effect/cli"
import { env as environment } from "node:process"
import { Bus } from "../../services/platform/messaging/Bus.ts"
import { warningsOf } from "../AppConfig/Warnings.ts"
import { Unsuccessful } from "./CliFault.ts"
import { auditCheck } from "./doctor/AuditCheck.ts"
import { brokerChecks } from "./doctor/BrokerChecks.ts"
import { databaseChecks } from "./doctor/DatabaseChecks.ts"
import { fail, type Finding, lineOf, ok, warn } from "./doctor/Finding.ts"
import { keyCheck } from "./doctor/KeyChecks.ts"
import { signingKeyChecks } from "./doctor/SigningKeyChecks.ts"
import { configOf, databaseAt, databaseUrls, type Instance, instance, natsUrl } from "./Instance.ts"
import { printable } from "./EscapeControls.ts"
import { reasonOf } from "./Reason.ts"

/** A check that fails to run is a finding, too. */
const checked = <E, R>(what: string, checks: Effect.Effect<ReadonlyArray<Finding>, E, R>) =>
  Effect.catch(checks, (error) => Effect.succeed([fail(what, reasonOf(error))]))

const process = ({ config, runtime }: Instance): Finding =>
  Option.match(runtime, {
    onNone: () => warn("instance", `none runs with BAILIWICK_HOME=${config.home}: type "deno task start"`),
    onSome: ({ http_url, pid }) => ok("instance", `process ${pid}${http_url === "" ? "" : ` on ${http_url}`}`),
  })

const databaseFindings = (found: Instance) =>
  checked(
    "database",
    Effect.gen(function* () {
      const urls = yield* databaseUrls(found)
      return yield* Effect.gen(function* () {
        const findings = yield* databaseChecks
        const whole = !findings.some(({ level, what }) => what === "schema" && level === "FAIL")
        if (!whole) return findings
        const audit = yield* auditCheck(found.config)
        return [...findings, audit, ...(yield* keyCheck(found.config)), ...(yield* signingKeyChecks)]
      }).pipe(Effect.provide(databaseAt(urls)))
    }),
  )

const brokerFindings = (found: Instance) =>
  Option.match(natsUrl(found), {
    onNone: () => Effect.succeed([fail("broker", `NATS_URL is not set and no instance runs: type "deno task start"`)]),
    onSome: (url) => checked("broker", brokerChecks(url).pipe(Effect.provide(Bus.layer(configOf(found, url))))),
  })

const examine = Effect.gen(function* () {
  const found = yield* Effect.result(instance)
  if (found._tag === "Failure") {
    return found.failure.message.split("\n").map((line) => fail("configuration", line))
  }
  const [database, broker] = yield* Effect.all([databaseFindings(found.success), brokerFindings(found.success)], {
    concurrency: 2,
  })
  const warnings = warningsOf(found.success.config, Object.keys(environment)).map((line) => warn("variables", line))
  return [
    ok("configuration", "every variable is valid"),
    ...warnings,
    process(found.success),
    ...database,
    ...broker,
  ]
}).pipe(Effect.provideService(References.MinimumLogLevel, "None"))

export const doctor = Command.make(
  "doctor",
  {},
  Effect.fn("cli.doctor")(function* () {
    const findings = yield* examine
    for (const finding of findings) yield* Console.log(printable(lineOf(finding)))
    if (findings.some(({ level }) => level === "FAIL")) return yield* new Unsuccessful()
  }),
).pipe(Command.withDescription("Checks configuration, database, schema, keys, broker and streams; says what to do"))
