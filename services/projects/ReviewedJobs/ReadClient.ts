/** Reads a client at the provider for an operator's command, and says how the provider answered. */
import { Effect } from "effect"
import type { ProjectId } from "../../../schemas/BrandedIds.ts"
import { OutcomeUnknown } from "../../../schemas/problems/IdentityProblems.ts"
import { Database } from "../../platform/database/Database.ts"
import { Vault } from "../../platform/security/Vault.ts"
import { IdentityProvider, type KnownClient, ProviderFault } from "../IdentityProvider.ts"
import { type ClaimedJob, clients } from "../ProviderJobs/Rows.ts"

export const isRefusal = (error: unknown): error is ProviderFault =>
  error instanceof ProviderFault && error.reason === "refused"

/** Makes a provider's fault OutcomeUnknown, which leaves the job as it is. */
export const orUnknown = <A, E>(job: ClaimedJob, asked: Effect.Effect<A, E | ProviderFault>) =>
  Effect.mapError(
    asked,
    (error): Exclude<E, ProviderFault> | OutcomeUnknown =>
      error instanceof ProviderFault ? new OutcomeUnknown({ job_id: job.id }) : error as Exclude<E, ProviderFault>,
  )

/** A new management credential in the provider's answer is stored whatever becomes of the job. */
export const readClient = Effect.gen(function* () {
  const { sql } = yield* Database
  const provider = yield* IdentityProvider
  const known = clients(sql, yield* Vault)

  return Effect.fnUntraced(function* (projectId: ProjectId, client: KnownClient) {
    const seen = yield* provider.read(client)
    if (seen !== null) yield* known.renew(projectId, client, seen.client)
    return seen
  })
})
