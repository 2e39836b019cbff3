/** Looks at the provider, with the saved reference and target, whether an ambiguous job was done. */
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import { Database } from "../../platform/database/Database.ts"
import { Vault } from "../../platform/security/Vault.ts"
import { IdentityProvider, type ProviderFault } from "../IdentityProvider.ts"
import { driftOf } from "../ProviderJobs/JobTargets.ts"
import { type ClaimedJob, clients } from "../ProviderJobs/Rows.ts"
import { jobClaims, type Reviewed, unfindable } from "./JobClaims.ts"
import { isRefusal, orUnknown, readClient } from "./ReadClient.ts"
import { settleReviewedJob, type Verdict } from "./SettleReviewedJob.ts"

export const reconcileJob = Effect.gen(function* () {
  const { sql } = yield* Database
  const provider = yield* IdentityProvider
  const known = clients(sql, yield* Vault)
  const read = yield* readClient
  const settle = yield* settleReviewedJob
  const { claimInScope, isAmbiguous, mustOperate } = yield* jobClaims

  const created = Effect.fnUntraced(function* (job: ClaimedJob): Effect.fn.Return<Verdict, ProviderFault> {
    const found = yield* provider.find(job.reference)
    if (found === unfindable) return { to: "ambiguous", code: unfindable }
    return found === null ? { to: "pending", code: "not_done" } : { to: "effective", client: found }
  })

  const verdict = Effect.fnUntraced(
    function* (job: ClaimedJob): Effect.fn.Return<Verdict, ProviderFault | SqlError.SqlError> {
      const mine = yield* known.of(job.project_id)
      const live = mine === null || mine.disabled ? null : mine.client
      if (job.kind === "client.create") return live === null ? yield* created(job) : { to: "effective" }
      if (live === null) return { to: "effective" }
      const seen = yield* read(job.project_id, live)
      if (job.kind === "client.disable") {
        return seen === null ? { to: "effective", disabled: true } : { to: "pending", code: "not_done" }
      }
      return seen !== null && job.target !== null && driftOf(job.target, seen.observed).length === 0
        ? { to: "effective", client: seen.client }
        : { to: "pending", code: "not_done" }
    },
  )

  return Effect.fn("ReviewedJobs.reconcile")(function* (by: Reviewed) {
    yield* mustOperate(by.personId)
    const job = yield* claimInScope(by.jobId, isAmbiguous, "ambiguous")
    // A provider that refuses to answer has decided nothing: from here on an operator may decide.
    const found = Effect.catchIf(
      verdict(job),
      isRefusal,
      () => Effect.succeed<Verdict>({ to: "ambiguous", code: unfindable }),
    )
    return settle(job, by, "reconcile", yield* orUnknown(job, found))
  })
})
