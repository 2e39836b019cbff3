/** The log's Ed25519 key: made once, sealed at rest. It never changes: verifiers keep its public half. */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect, Redacted } from "effect"
import { createPrivateKey, generateKeyPairSync, type KeyObject } from "node:crypto"
import type { Vault } from "../../platform/security/Vault.ts"
import { type LogOrigin, verifierKey } from "../LogCheckpoint.ts"

interface KeyRow {
  readonly verifier_key: string
  readonly private_key: Uint8Array
  readonly vault_kid: string
}

const cellOf = (row: string) => ({ table: "log_keys", column: "private_key", row })

export const logKeys = (sql: PgClient.PgClient, vault: Vault["Service"]) => {
  let opened: { readonly verifier_key: string; readonly key: KeyObject } | null = null

  /** Makes the key of a log that begins, in the current transaction. */
  const make = Effect.fnUntraced(function* (origin: LogOrigin) {
    const { privateKey } = generateKeyPairSync("ed25519")
    const name = verifierKey(origin, privateKey)
    const sealed = vault.seal(Redacted.make(String(privateKey.export({ type: "pkcs8", format: "pem" }))), cellOf(name))
    const now = new Date(yield* Clock.currentTimeMillis)
    yield* sql`
      insert into log_keys (verifier_key, private_key, vault_kid, created_at)
      values (${name}, ${sealed.bytes}, ${sealed.kid}, ${now})`
  })

  /** The private key. */
  const current = Effect.gen(function* () {
    const [row] = yield* sql<KeyRow>`select verifier_key, private_key, vault_kid from log_keys`
    if (row === undefined) return yield* Effect.die(new Error("The log has no key"))
    if (opened?.verifier_key !== row.verifier_key) {
      const pem = vault.open({ kid: row.vault_kid, bytes: row.private_key }, cellOf(row.verifier_key))
      opened = { verifier_key: row.verifier_key, key: createPrivateKey(Redacted.value(pem)) }
    }
    return opened.key
  })

  return { make, current }
}
