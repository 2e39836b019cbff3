/**
 * Finds the tables with data that is sealed or derived under inactive keys of the ring and is still needed. A key that
 * no row names may be deleted.
 */
import { Effect } from "effect"
import { Database } from "../../services/platform/database/Database.ts"
import { type Finding, ok } from "./Finding.ts"

/** Every column that names a key of the ring, and which rows still need it. */
export const keyColumns: ReadonlyArray<readonly [table: string, column: string, needed: string]> = [
  ["webhooks", "secret_kid", "deleted_at is null"],
  ["webhooks", "old_secret_kid", "deleted_at is null"],
  ["webhooks", "headers_kid", "deleted_at is null"],
  ["webhooks", "basic_auth_kid", "deleted_at is null"],
  ["transfers", "accept_kid", "accept_hash is not null"],
  ["transfers", "stop_kid", "stop_hash is not null"],
  ["dkim_keys", "private_kid", "true"],
  ["idempotency_receipts", "kid", "true"],
  ["authenticators", "kid", "true"],
  ["recovery_codes", "kid", "true"],
  ["credential_intents", "kid", "state = 'pending'"],
  ["requests", "token_kid", "token_hash is not null"],
  ["provider_clients", "kid", "true"],
  ["console_sessions", "kid", "true"],
  ["signing_keys", "vault_kid", "true"],
  ["lifecycle_streams", "vault_kid", "true"],
  ["log_keys", "vault_kid", "retired_at is null"],
]

/** The tables that still need a key, each named once. */
export const neededBy = Effect.fnUntraced(function* (kid: string) {
  const { sql } = yield* Database
  const needing = new Set<string>()
  for (const [table, column, needed] of keyColumns) {
    if (needing.has(table)) continue
    const [row] = yield* sql<{ used: boolean }>`
      select exists (select from ${sql(table)} where ${sql(column)} = ${kid} and ${sql.literal(needed)}) as used`
    if (row!.used) needing.add(table)
  }
  return [...needing]
})

/** One finding for each of these kids. */
export const keyUse = (kids: ReadonlyArray<string>) =>
  Effect.forEach(
    kids,
    (kid) =>
      Effect.map(neededBy(kid), (tables): Finding =>
        tables.length > 0
          ? ok("keys", `${kid} is not active, and still needed by ${tables.join(", ")}`)
          : ok("keys", `${kid} is needed by nothing`, "delete it from vault_keys and from the ring, on every machine")),
  )
