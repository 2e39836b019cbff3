/** The checks that `cli doctor` and `GET /v1/operations/doctor` have in common. */
import { Effect } from "effect"
import { env as environment } from "node:process"
import type { AppConfig } from "../AppConfig.ts"
import { warningsOf } from "../AppConfig/Warnings.ts"
import { reasonOf } from "../cli/Reason.ts"
import { auditCheck } from "./AuditCheck.ts"
import { databaseChecks } from "./DatabaseChecks.ts"
import { fail, type Finding, ok, warn } from "./Finding.ts"
import { decisionLogCheck } from "./DecisionLogCheck.ts"
import { keyCheck } from "./KeyChecks.ts"
import { signalChecks } from "./SignalChecks.ts"
import { signingKeyChecks } from "./SigningKeyChecks.ts"

/** The findings of checks; a check that fails to run is a finding, too. */
export const checked = <E, R>(what: string, checks: Effect.Effect<ReadonlyArray<Finding>, E, R>) =>
  Effect.catch(checks, (error) => Effect.succeed([fail(what, reasonOf(error))]))

/** The variables of this process, from which its configuration was read. */
export const settingsFound = (config: AppConfig): ReadonlyArray<Finding> => [
  ok("configuration", "every variable is valid"),
  ...warningsOf(config, Object.keys(environment)).map((line) => warn("variables", line)),
]

/** Findings about the database, and about the key rings where its schema is complete. */
export const databaseFound = Effect.fnUntraced(function* (config: AppConfig) {
  const findings = yield* databaseChecks
  if (findings.some(({ level, what }) => what === "schema" && level === "FAIL")) return findings
  return [
    ...findings,
    yield* auditCheck(config),
    ...(yield* keyCheck(config)),
    ...(yield* signingKeyChecks),
    yield* decisionLogCheck,
    ...(yield* signalChecks(config)),
  ]
})
