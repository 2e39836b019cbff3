/** Settles a job by what an operator says of its client, after a look at the provider. */
import { Effect, type Redacted } from "effect"
import { HTTPValidationError } from "../../../schemas/Validation.ts"
import { Database } from "../../platform/database/Database.ts"
import { Vault } from "../../platform/security/Vault.ts"
import { IdentityProvider, type Seen } from "../IdentityProvider.ts"
import { type ClaimedJob, clients } from "../ProviderJobs/Rows.ts"
import { jobClaims, type Reviewed } from "./JobClaims.ts"
import { isRefusal, orUnknown, readClient } from "./ReadClient.ts"
import { settleReviewedJob } from "./SettleReviewedJob.ts"

export interface Repair extends Reviewed {
  readonly clientId: string
  readonly managementUri: string | null
  readonly managementToken: Redacted.Redacted | null
}

const wrong = (fault: string) => HTTPValidationError.at(["body", "client_id"], "value_error", `Value error, ${fault}`)

export const repairJob = Effect.gen(function* () {
  const { sql } = yield* Database
  const provider = yield* IdentityProvider
  const known = clients(sql, yield* Vault)
  const read = yield* readClient
  const settle = yield* settleReviewedJob
  const { claimInScope, isUndecidable, mustOperate } = yield* jobClaims

  /** Fails where the client that was read is another project's. */
  const mustBeOwn = Effect.fnUntraced(function* (job: ClaimedJob, clientId: string, { observed }: Seen) {
    const reference = observed["software_id"] ?? job.reference
    const [other] = yield* sql`
      select from provider_clients where client_id = ${clientId} and project_id <> ${job.project_id}`
    if (reference !== job.reference || other !== undefined) return yield* wrong("the client of another project")
  })

  return Effect.fn("ReviewedJobs.repair")(function* ({ clientId, managementToken, managementUri, ...by }: Repair) {
    yield* mustOperate(by.personId)
    const job = yield* claimInScope(by.jobId, isUndecidable, "failed")
    const disables = job.kind === "client.disable"
    if (managementUri !== null && !provider.manages(managementUri)) {
      return yield* HTTPValidationError.at(
        ["body", "registration_client_uri"],
        "value_error",
        "Value error, not an address of the provider",
      )
    }
    const mine = yield* known.of(job.project_id)
    // Only the known client may be confirmed as gone: otherwise the known client would stay enabled.
    if (disables && mine !== null && mine.client.clientId !== clientId) {
      return yield* wrong("not the client of this project")
    }
    const same = mine?.client.clientId === clientId ? mine.client : null
    const client = {
      clientId,
      managementUri: managementUri ?? same?.managementUri ?? null,
      managementToken: managementToken ?? same?.managementToken ?? null,
    }
    const asked = Effect.catchIf(read(job.project_id, client), isRefusal, () => Effect.succeed(null))
    const seen = yield* orUnknown(job, asked)
    if (disables) {
      if (seen !== null) return yield* wrong("the client is still there")
      return settle(job, by, "repair", { to: "effective", disabled: true })
    }
    if (seen === null) return yield* wrong("no such client")
    yield* mustBeOwn(job, clientId, seen)
    return settle(job, by, "repair", { to: "effective", client: seen.client })
  })
})
