/**
 * The doctor's findings for the operator's screens: the checks of `cli doctor`, run within a serving process on its own
 * connections. A check that fails or does not end in time is a finding, so that an outage is named and not a 503.
 */
import { Clock, Context, Effect, Layer, Option, type Redacted } from "effect"
import type { SqlError } from "effect/sql"
import { pid } from "node:process"
import type { PersonId } from "../../schemas/BrandedIds.ts"
import type { DoctorReport } from "../../schemas/identity/DoctorReport.ts"
import type { RoleRequired } from "../../schemas/problems/IdentityProblems.ts"
import { roleRequired, Roles } from "../../services/people/Roles.ts"
import type { Database } from "../../services/platform/database/Database.ts"
import type { Bus } from "../../services/platform/messaging/Bus.ts"
import { type AppConfig, originAt } from "../AppConfig.ts"
import { brokerChecks } from "./BrokerChecks.ts"
import { checked, databaseFound, settingsFound } from "./Examination.ts"
import { fail, type Finding, ok } from "./Finding.ts"
import { type Hours, hoursOf } from "./FindingHours.ts"
import { type Since, sinceOf, timeOf } from "./FindingTimes.ts"

const deadline = "10 seconds"

const levels = { FAIL: "fail", warn: "warn", ok: "ok" } as const
const order = ["fail", "warn", "ok"] as const

/** Findings as the contract has them, the worst first; those of one level stay in the order of the checks. */
const sorted = (findings: ReadonlyArray<Finding>, since: Since, hours: Hours): DoctorReport["items"] =>
  findings
    .flatMap((finding) => {
      const { level, notes, what } = finding
      const counted = level === "ok" ? undefined : hours.get(what)
      const known = {
        since: timeOf(since, finding),
        hours: counted?.hours ?? null,
        hours_capped: counted?.capped ?? false,
      }
      return notes.map((note) => ({ level: levels[level], subject: what, ...note, ...known }))
    })
    .sort((a, b) => order.indexOf(a.level) - order.indexOf(b.level))

const inTime = <R>(what: string, checks: Effect.Effect<ReadonlyArray<Finding>, never, R>) =>
  Effect.map(
    Effect.timeoutOption(checks, deadline),
    Option.getOrElse((): ReadonlyArray<Finding> => [fail(what, `does not answer within ${deadline}`)]),
  )

export class Findings extends Context.Service<Findings, {
  /** Runs every check now; RoleRequired unless the person is an active operator. */
  readonly examine: (personId: PersonId) => Effect.Effect<DoctorReport, RoleRequired | SqlError.SqlError>
  /** The same. Checks no role: the caller has checked that the person is an operator. */
  readonly report: Effect.Effect<DoctorReport>
}>()("bailiwick/src/doctor/Findings") {
  static readonly layer = (config: AppConfig, natsUrl: Redacted.Redacted) =>
    Layer.effect(
      Findings,
      Effect.gen(function* () {
        const roles = yield* Roles
        const context = yield* Effect.context<Bus | Database>()
        const look = Effect.all([
          inTime("database", checked("database", databaseFound(config))),
          inTime("broker", checked("broker", brokerChecks(natsUrl))),
        ], { concurrency: 2 }).pipe(Effect.provide(context))

        const report = Effect.gen(function* () {
          const process = ok("instance", `process ${pid} on ${originAt(config)}`)
          const [database, broker] = yield* look
          const found = [...settingsFound(config), process, ...database, ...broker]
          const [since, hours] = yield* Effect.provide(Effect.all([sinceOf(found), hoursOf(found)]), context)
          const items = sorted(found, since, hours)
          const as_of = new Date(yield* Clock.currentTimeMillis).toISOString()
          return { as_of, level: items[0]!.level, items } satisfies DoctorReport
        })

        const examine = Effect.fn("Findings.examine")(function* (personId: PersonId) {
          if (!(yield* roles.isOperator(personId, "none"))) return yield* roleRequired("an active operator")
          return yield* report
        })

        return Findings.of({ examine, report })
      }),
    )
}
