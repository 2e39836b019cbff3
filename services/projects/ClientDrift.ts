/**
 * Finds drift of the provider's clients: clients that were changed at the provider. Checks a few a minute, the longest
 * unchecked first, and only notes the differences; mending is an operator's decision.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { ProjectId } from "../../schemas/BrandedIds.ts"
import { digestOf } from "../platform/security/CanonicalJson.ts"
import { Database } from "../platform/database/Database.ts"
import { Vault } from "../platform/security/Vault.ts"
import { IdentityProvider, unmanaged } from "./IdentityProvider.ts"
import { clients } from "./ProviderJobs/Rows.ts"
import { driftOf } from "./ProviderJobs/JobTargets.ts"

type Mine = NonNullable<Effect.Success<ReturnType<ReturnType<typeof clients>["of"]>>>

const atOnce = 10
const restMillis = 10 * 60_000

export class ClientDrift extends Context.Service<ClientDrift, {
  /** Checks clients that were last checked ten minutes ago, at most ten; returns how many. */
  readonly look: Effect.Effect<number, SqlError.SqlError>
}>()("bailiwick/services/projects/ClientDrift") {
  static readonly layer = Layer.effect(
    ClientDrift,
    Effect.gen(function* () {
      const { sql } = yield* Database
      const provider = yield* IdentityProvider
      const known = clients(sql, yield* Vault)

      /** Notes the drift of the checked client, unless the client was changed or ended since. */
      const note = Effect.fnUntraced(function* (
        projectId: ProjectId,
        { client: { clientId }, expected }: Mine,
        found: ReturnType<typeof driftOf>,
      ) {
        const now = new Date(yield* Clock.currentTimeMillis)
        const same = yield* sql`
          select from provider_clients where project_id = ${projectId} and client_id = ${clientId}
            and expected_digest = ${digestOf(expected)} and not disabled for update`
        if (same.length === 0) return
        const rows = found.map(({ expected, field, observed }) => ({ field, expected, observed }))
        yield* sql`
          delete from client_drift where project_id = ${projectId}
            and field <> all(${found.map(({ field }) => field)}::text[])`
        yield* sql`
          insert into client_drift (project_id, field, client_id, expected_digest, observed_digest, first_seen_at)
          select ${projectId}, field, ${clientId}, expected, observed, ${now}
          from jsonb_to_recordset(${sql.json(rows)}) r(field text, expected text, observed text)
          on conflict (project_id, field) do update
          set client_id = excluded.client_id, expected_digest = excluded.expected_digest,
            observed_digest = excluded.observed_digest`
      }, sql.withTransaction)

      const examine = Effect.fnUntraced(function* (projectId: ProjectId) {
        const mine = yield* known.of(projectId)
        if (mine === null || mine.disabled) return
        const wholly = (observed: string) =>
          note(projectId, mine, [{ field: "client_id", expected: "present", observed }])
        const answer = yield* Effect.result(provider.read(mine.client))
        if (answer._tag === "Failure") {
          const { code, reason } = answer.failure
          // RFC 7592 has the same answer for a client that is gone and for a credential that is no longer the client's.
          // A provider that does not answer is asked again when the client's turn comes.
          if (reason === "refused" && code !== unmanaged) yield* wholly(code)
          return
        }
        const seen = answer.success
        if (seen === null) return yield* wholly("absent")
        yield* known.renew(projectId, mine.client, seen.client)
        yield* note(projectId, mine, driftOf(mine.expected, seen.observed))
      })

      const look = Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        const due = yield* sql<{ project_id: ProjectId }>`
          update provider_clients set looked_at = ${new Date(now)} where project_id in (
            select c.project_id from provider_clients c
            where not c.disabled and coalesce(c.looked_at < ${new Date(now - restMillis)}, true)
              and not exists (
                select from provider_jobs j where j.project_id = c.project_id and j.state in ('pending', 'ambiguous'))
            order by c.looked_at nulls first limit ${atOnce} for update skip locked
          ) returning project_id`
        // A client whose check fails must not keep the others from being checked.
        const exits = yield* Effect.forEach(due, ({ project_id }) => Effect.exit(examine(project_id)))
        yield* Effect.all(exits, { discard: true })
        return due.length
      })

      return ClientDrift.of({ look })
    }),
  )
}
