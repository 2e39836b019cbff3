/** The call that a provider job is for. */
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import { Database } from "../../platform/database/Database.ts"
import { Vault } from "../../platform/security/Vault.ts"
import { type ClientTarget, IdentityProvider, ProviderFault } from "../IdentityProvider.ts"
import { type ClaimedJob, clients } from "./Rows.ts"
import type { JobOutcome } from "./SettleJob.ts"

/** `doubtful`: the call may have been made in a time that a restore or a failover lost. */
export const callProvider = Effect.gen(function* () {
  const { sql } = yield* Database
  const provider = yield* IdentityProvider
  const known = clients(sql, yield* Vault)

  const create = Effect.fnUntraced(function* (job: ClaimedJob, target: ClientTarget, doubtful: boolean) {
    const found = doubtful ? yield* provider.find(job.reference) : null
    if (found === "unfindable") return yield* new ProviderFault({ reason: "unknown", code: "restored" })
    return found === null ? yield* provider.create(target) : { client: found, observed: {} }
  })

  return Effect.fnUntraced(function* (
    job: ClaimedJob,
    target: ClientTarget,
    doubtful: boolean,
  ): Effect.fn.Return<JobOutcome, ProviderFault | SqlError.SqlError> {
    const mine = yield* known.of(job.project_id)
    if (job.kind === "client.create") {
      // A disabled client stays disabled; a new one replaces it.
      if (mine !== null && !mine.disabled) return "nothing to do"
      return yield* create(job, target, doubtful)
    }
    if (mine === null || mine.disabled) return "nothing to do"
    if (job.kind === "client.update") {
      // An update must not take all redirect URIs from a client: that is done by withdrawing the project, and the
      // directory may have emptied them since this job was added (DirectoryWatch).
      if (target.redirect_uris.length === 0 && mine.expected.redirect_uris.length > 0) return "nothing to do"
      return yield* provider.update(mine.client, target)
    }
    return yield* Effect.as(provider.disable(mine.client), "disabled" as const)
  })
})
