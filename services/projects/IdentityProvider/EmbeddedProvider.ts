/** The provider of an installation without another one: clients in PostgreSQL, found by their reference. */
import { Clock, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import { Database } from "../../platform/database/Database.ts"
import { Ids } from "../../platform/Ids.ts"
import {
  type ClientTarget,
  IdentityProvider,
  type KnownClient,
  type Observed,
  ProviderFault,
} from "../IdentityProvider.ts"

const known = (clientId: string): KnownClient => ({ clientId, managementUri: null, managementToken: null })

/** A statement that failed was rolled back, unless its connection went away in the middle. */
const faulty = <A>(effect: Effect.Effect<A, SqlError.SqlError>) =>
  Effect.mapError(effect, (error) =>
    new ProviderFault({
      reason: error.reason._tag === "ConnectionError" ? "unknown" : "unavailable",
      code: "database",
    }))

export const embedded = Layer.effect(
  IdentityProvider,
  Effect.gen(function* () {
    const { sql } = yield* Database
    const ids = yield* Ids

    const create = Effect.fn("EmbeddedProvider.create")(function* (target: ClientTarget) {
      const now = new Date(yield* Clock.currentTimeMillis)
      const [row] = yield* faulty(sql<{ client_id: string; metadata: Observed }>`
        insert into embedded_clients (client_id, reference, metadata, created_at, updated_at)
        values (${yield* ids.next}, ${target.software_id}, ${sql.json(target)}, ${now}, ${now})
        on conflict (reference) do update set client_id = excluded.client_id, metadata = excluded.metadata,
          disabled = false, created_at = excluded.created_at, updated_at = excluded.updated_at
        where embedded_clients.disabled
        returning client_id, metadata`)
      if (row === undefined) return yield* new ProviderFault({ reason: "refused", code: "client_exists" })
      return { client: known(row.client_id), observed: row.metadata }
    })

    const update = Effect.fn("EmbeddedProvider.update")(function* ({ clientId }: KnownClient, target: ClientTarget) {
      const now = new Date(yield* Clock.currentTimeMillis)
      const [row] = yield* faulty(sql<{ metadata: Observed }>`
        update embedded_clients set metadata = ${sql.json(target)}, updated_at = ${now}
        where client_id = ${clientId} and not disabled returning metadata`)
      if (row === undefined) return yield* new ProviderFault({ reason: "refused", code: "no_such_client" })
      return { client: known(clientId), observed: row.metadata }
    })

    const disable = Effect.fn("EmbeddedProvider.disable")(function* ({ clientId }: KnownClient) {
      const now = new Date(yield* Clock.currentTimeMillis)
      yield* faulty(sql`
        update embedded_clients set disabled = true, updated_at = ${now} where client_id = ${clientId}`)
    })

    return IdentityProvider.of({
      create,
      update,
      disable,
      read: ({ clientId }) =>
        Effect.map(
          faulty(sql<{ metadata: Observed }>`
            select metadata from embedded_clients where client_id = ${clientId} and not disabled`),
          ([row]) => row === undefined ? null : { client: known(clientId), observed: row.metadata },
        ),
      find: (reference) =>
        Effect.map(
          faulty(sql<{ client_id: string }>`
            select client_id from embedded_clients where reference = ${reference} and not disabled`),
          ([row]) => row === undefined ? null : known(row.client_id),
        ),
      // No request ever goes to the URI.
      manages: () => true,
    })
  }),
)
