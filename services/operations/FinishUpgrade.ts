/** Ends an upgrade: no program of an earlier version works on this database any more (docs/upgrading.md). */
import { Effect } from "effect"
import { Database } from "../platform/database/Database.ts"
import { closeToOlder } from "../platform/database/OlderPrograms.ts"
import { schemaVersion } from "../platform/database/VersionFence.ts"
import { Audit } from "../platform/observability/Audit.ts"
import { CurrentOperator } from "../platform/observability/CurrentOperator.ts"

export type Finished = "closed" | "closed before" | "not migrated" | "not the owner"

/** `version`: this program's. Recorded before it is closed, so that a kill between the two leaves a record too many. */
export const finishUpgrade = Effect.fn("finishUpgrade")(function* (version: number, reason: string) {
  const { owns } = yield* Database
  const audit = yield* Audit
  const { applied, minApp } = yield* schemaVersion
  if (minApp >= version) return "closed before" satisfies Finished
  if (applied < version) return "not migrated" satisfies Finished
  if (!(yield* owns)) return "not the owner" satisfies Finished
  yield* audit.append({
    action: "upgrade.finished",
    actor: yield* CurrentOperator,
    subject: "schema",
    outcome: "done",
    decision: false,
    details: { reason, version },
  })
  yield* closeToOlder(version)
  return "closed" satisfies Finished
})
