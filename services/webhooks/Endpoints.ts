/**
 * A webhook's URL and secrets for its POSTs, decrypted once per version and cached. Each statement that claims
 * deliveries returns the webhook's version, so an entry from before a change is never used after the change was
 * answered.
 */
import { Context, Effect, Layer, Redacted } from "effect"
import type { SqlError } from "effect/sql"
import { BoundedMap } from "../platform/BoundedMap.ts"
import { Database } from "../platform/database/Database.ts"
import { counted } from "../platform/MapSizes.ts"
import { Outbound } from "../platform/Outbound.ts"
import { Vault } from "../platform/security/Vault.ts"

export interface Endpoint {
  readonly webhookId: string
  readonly version: number
  readonly url: string
  /** `host:port`, the key of limits per destination. */
  readonly host: string
  readonly secret: string
  /** During a rotation's overlap (until: ms since the epoch) the old secret signs as well. */
  readonly old: { readonly secret: string; readonly until: number } | null
}

export interface EndpointKey {
  readonly webhookId: string
  readonly version: number
}

interface Row {
  readonly id: string
  readonly version: number
  readonly url: string
  readonly secret_kid: string
  readonly secret: Uint8Array
  readonly old_secret_kid: string | null
  readonly old_secret: Uint8Array | null
  readonly old_secret_until: Date | null
}

const memory = 20_000

export class Endpoints extends Context.Service<Endpoints, {
  /** The endpoints of these webhooks, each at its version or a newer one; deleted webhooks are left out. */
  readonly get: (keys: Iterable<EndpointKey>) => Effect.Effect<ReadonlyMap<string, Endpoint>, SqlError.SqlError>
}>()("bailiwick/services/webhooks/Endpoints") {
  static readonly layer = Layer.effect(
    Endpoints,
    Effect.gen(function* () {
      const { reads } = yield* Database
      const { hostKey } = yield* Outbound
      const vault = yield* Vault
      const known = new BoundedMap<string, Endpoint>(memory)
      yield* counted("webhook endpoints", () => known.size)

      const open = (row: string, column: "secret" | "old_secret", kid: string, bytes: Uint8Array) =>
        Redacted.value(vault.open({ kid, bytes }, { table: "webhooks", column, row }))

      const remember = (row: Row): Endpoint => {
        const { id, old_secret, old_secret_kid, old_secret_until } = row
        const endpoint: Endpoint = {
          webhookId: id,
          version: row.version,
          url: row.url,
          host: hostKey(row.url),
          secret: open(id, "secret", row.secret_kid, row.secret),
          old: old_secret === null || old_secret_kid === null || old_secret_until === null ? null : {
            secret: open(id, "old_secret", old_secret_kid, old_secret),
            until: old_secret_until.getTime(),
          },
        }
        known.set(id, endpoint)
        return endpoint
      }

      const get = Effect.fnUntraced(function* (keys: Iterable<EndpointKey>) {
        const found = new Map<string, Endpoint>()
        const missing = new Set<string>()
        for (const { webhookId, version } of keys) {
          const endpoint = known.get(webhookId)
          if (endpoint !== undefined && endpoint.version >= version) found.set(webhookId, endpoint)
          else missing.add(webhookId)
        }
        if (missing.size > 0) {
          const rows = yield* reads<Row>`
            select id, version, url, secret_kid, secret, old_secret_kid, old_secret, old_secret_until
            from webhooks where id = any(${[...missing]}::uuid[]) and deleted_at is null`
          for (const row of rows) found.set(row.id, remember(row))
        }
        return found
      })

      return Endpoints.of({ get })
    }),
  )
}
