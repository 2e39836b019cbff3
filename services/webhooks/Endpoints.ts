/**
 * A webhook's URL, secrets and custom headers for its POSTs, decrypted once per version and cached. Each statement that
 * claims deliveries returns the webhook's version, so an entry from before a change is never used after the change was
 * answered.
 */
import { Context, Effect, Layer, Redacted } from "effect"
import type { SqlError } from "effect/sql"
import type { WebhookId } from "../../schemas/BrandedIds.ts"
import { BoundedMap } from "../platform/BoundedMap.ts"
import { Database } from "../platform/database/Database.ts"
import { counted } from "../platform/MapSizes.ts"
import { Outbound } from "../platform/Outbound.ts"
import { Vault } from "../platform/security/Vault.ts"
import { basicOf, readHeaders, type SealedColumn } from "./Webhooks/SealedHeaders.ts"

export interface Endpoint {
  readonly webhookId: WebhookId
  readonly version: number
  readonly url: string
  /** `host:port`, the key of limits per destination. */
  readonly host: string
  readonly secret: string
  /** During a rotation's overlap (until: ms since the epoch) the old secret signs as well. */
  readonly old: { readonly secret: string; readonly until: number } | null
  /** Its custom headers, basic authentication included; null where it has none. */
  readonly headers: Readonly<Record<string, string>> | null
  readonly honorsRetryAfter: boolean
  /** Deliveries that may begin in a second; null: any number. */
  readonly rateLimit: number | null
}

export interface EndpointKey {
  readonly webhookId: WebhookId
  readonly version: number
}

interface Row {
  readonly id: WebhookId
  readonly version: number
  readonly url: string
  readonly secret_kid: string
  readonly secret: Uint8Array
  readonly old_secret_kid: string | null
  readonly old_secret: Uint8Array | null
  readonly old_secret_until: Date | null
  readonly headers_kid: string | null
  readonly headers: Uint8Array | null
  readonly basic_auth_kid: string | null
  readonly basic_auth: Uint8Array | null
  readonly honor_retry_after: boolean
  readonly rate_limit: number | null
}

const memory = 20_000

export class Endpoints extends Context.Service<Endpoints, {
  /** The endpoints of these webhooks, each at its version or a newer one; deleted webhooks are left out. */
  readonly get: (keys: Iterable<EndpointKey>) => Effect.Effect<ReadonlyMap<WebhookId, Endpoint>, SqlError.SqlError>
}>()("bailiwick/services/webhooks/Endpoints") {
  static readonly layer = Layer.effect(
    Endpoints,
    Effect.gen(function* () {
      const { reads } = yield* Database
      const { hostKey } = yield* Outbound
      const vault = yield* Vault
      const known = new BoundedMap<WebhookId, Endpoint>(memory)
      yield* counted("webhook endpoints", () => known.size)

      const open = (row: string, column: SealedColumn, kid: string, bytes: Uint8Array) =>
        Redacted.value(vault.open({ kid, bytes }, { table: "webhooks", column, row }))

      const headersOf = (row: Row): Endpoint["headers"] => {
        const { basic_auth, basic_auth_kid, headers, headers_kid, id } = row
        const all: Array<readonly [name: string, value: string]> = []
        if (headers !== null && headers_kid !== null) {
          for (const { name, value } of readHeaders(open(id, "headers", headers_kid, headers))) all.push([name, value])
        }
        if (basic_auth !== null && basic_auth_kid !== null) {
          all.push(["Authorization", basicOf(open(id, "basic_auth", basic_auth_kid, basic_auth))])
        }
        return all.length === 0 ? null : Object.fromEntries(all)
      }

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
          headers: headersOf(row),
          honorsRetryAfter: row.honor_retry_after,
          rateLimit: row.rate_limit,
        }
        known.set(id, endpoint)
        return endpoint
      }

      const get = Effect.fnUntraced(function* (keys: Iterable<EndpointKey>) {
        const found = new Map<WebhookId, Endpoint>()
        const missing = new Set<WebhookId>()
        for (const { webhookId, version } of keys) {
          const endpoint = known.get(webhookId)
          if (endpoint !== undefined && endpoint.version >= version) found.set(webhookId, endpoint)
          else missing.add(webhookId)
        }
        if (missing.size > 0) {
          const rows = yield* reads<Row>`
            select id, version, url, secret_kid, secret, old_secret_kid, old_secret, old_secret_until, headers_kid,
              headers, basic_auth_kid, basic_auth, honor_retry_after, rate_limit
            from webhooks where id = any(${[...missing]}::uuid[]) and deleted_at is null`
          for (const row of rows) found.set(row.id, remember(row))
        }
        return found
      })

      return Endpoints.of({ get })
    }),
  )
}
