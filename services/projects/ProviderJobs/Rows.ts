/** The rows of provider jobs and of the clients that they make. */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect, Redacted } from "effect"
import type { ProjectId, ProviderJobId } from "../../../schemas/BrandedIds.ts"
import type { Job, JobState } from "../../../schemas/identity/Operation.ts"
import type { LeasedTable } from "../../platform/database/Leases.ts"
import type { Vault } from "../../platform/security/Vault.ts"
import type { ClientTarget, KnownClient } from "../IdentityProvider.ts"
import { digestOf } from "../../platform/security/CanonicalJson.ts"

export const providerJobKinds = ["client.create", "client.update", "client.disable"] as const
export type ProviderJobKind = (typeof providerJobKinds)[number]

export const jobsTable: LeasedTable = { table: "provider_jobs", key: "id", keyType: "uuid" }

/** How long a claim of a job holds. */
export const leaseMillis = 30_000

/** Attempts after which a job has failed. */
export const maxAttempts = 8

export interface JobRow {
  readonly id: ProviderJobId
  readonly kind: ProviderJobKind
  readonly project_id: ProjectId
  readonly state: Exclude<JobState, "running">
  readonly held: boolean
  readonly reference: string
  readonly target: ClientTarget | null
  readonly begun_at: Date | null
  readonly created_at: Date
  readonly updated_at: Date
  readonly attempts: number
  readonly not_before: Date
  readonly last_error: string | null
  readonly claim: bigint | null
  readonly lease_until: Date | null
}

export type ClaimedJob = JobRow & { readonly claim: bigint }

export const viewOf = (row: JobRow): Job => ({
  job_id: row.id,
  kind: row.kind,
  project_id: row.project_id,
  state: row.state === "pending" && row.claim !== null ? "running" : row.state,
  attempts: row.attempts,
  max_attempts: maxAttempts,
  next_attempt_at: row.state === "pending" && row.claim === null && !row.held ? row.not_before.toISOString() : null,
  last_error_code: row.last_error,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
})

const tokenOf = (token: Redacted.Redacted | null) => token === null ? null : Redacted.value(token)

/** The known clients, with their management credentials sealed. */
export const clients = (sql: PgClient.PgClient, vault: Vault["Service"]) => {
  const cellOf = (projectId: ProjectId) => ({ table: "provider_clients", column: "management_token", row: projectId })

  const of = Effect.fnUntraced(function* (projectId: ProjectId) {
    const [row] = yield* sql<{
      client_id: string
      management_uri: string | null
      management_token: Uint8Array | null
      kid: string | null
      disabled: boolean
      expected: ClientTarget
    }>`select client_id, management_uri, management_token, kid, disabled, expected
      from provider_clients where project_id = ${projectId}`
    if (row === undefined) return null
    const client: KnownClient = {
      clientId: row.client_id,
      managementUri: row.management_uri,
      managementToken: row.management_token === null || row.kid === null
        ? null
        : vault.open({ kid: row.kid, bytes: row.management_token }, cellOf(projectId)),
    }
    return { client, disabled: row.disabled, expected: row.expected }
  })

  /** Stores the client of an answer, and its id on the project. */
  const keep = Effect.fnUntraced(function* (
    projectId: ProjectId,
    reference: string,
    client: KnownClient,
    target: ClientTarget,
  ) {
    const now = new Date(yield* Clock.currentTimeMillis)
    const sealed = client.managementToken === null ? null : vault.seal(client.managementToken, cellOf(projectId))
    yield* sql`
      insert into provider_clients (project_id, reference, client_id, management_uri, management_token, kid, expected,
        expected_digest, made_at, looked_at)
      values (${projectId}, ${reference}, ${client.clientId}, ${client.managementUri}, ${sealed?.bytes ?? null},
        ${sealed?.kid ?? null}, ${sql.json(target)}, ${digestOf(target)}, ${now}, ${now})
      on conflict (project_id) do update
      set client_id = excluded.client_id, management_uri = excluded.management_uri,
        management_token = excluded.management_token, kid = excluded.kid, expected = excluded.expected,
        expected_digest = excluded.expected_digest, looked_at = excluded.looked_at, disabled = false`
    yield* sql`update projects set client_id = ${client.clientId} where id = ${projectId}`
    yield* mended(projectId)
  })

  /** Deletes noted drift: the client was set to its target. */
  const mended = (projectId: ProjectId) => sql`delete from client_drift where project_id = ${projectId}`

  /** Stores the management credential of the last answer: with a new one the provider no longer accepts the old one. */
  const renew = Effect.fnUntraced(
    function* (projectId: ProjectId, before: KnownClient, { managementToken }: KnownClient) {
      if (managementToken === null || tokenOf(before.managementToken) === tokenOf(managementToken)) return
      const { bytes, kid } = vault.seal(managementToken, cellOf(projectId))
      yield* sql`
      update provider_clients set management_token = ${bytes}, kid = ${kid}
      where project_id = ${projectId} and client_id = ${before.clientId} and not disabled`
    },
  )

  /** Marks the client as disabled, and deletes its management credential. */
  const disabled = Effect.fnUntraced(function* (projectId: ProjectId) {
    yield* sql`
      update provider_clients set disabled = true, management_token = null, kid = null where project_id = ${projectId}`
    yield* mended(projectId)
  })

  return { of, keep, renew, disabled }
}
