/**
 * The log's Ed25519 keys, sealed at rest. A log has one. While its key is replaced it has two, and both sign each
 * checkpoint, so that a verifier who knows either accepts it. A retired key's private half is deleted.
 */
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

/** Makes a key of a log, in the current transaction; returns it as verifiers are told it. */
export const makeLogKey = Effect.fnUntraced(
  function* (sql: PgClient.PgClient, vault: Vault["Service"], origin: LogOrigin) {
    const { privateKey } = generateKeyPairSync("ed25519")
    const name = verifierKey(origin, privateKey)
    const sealed = vault.seal(Redacted.make(String(privateKey.export({ type: "pkcs8", format: "pem" }))), cellOf(name))
    const now = new Date(yield* Clock.currentTimeMillis)
    yield* sql`
      insert into log_keys (verifier_key, private_key, vault_kid, created_at)
      values (${name}, ${sealed.bytes}, ${sealed.kid}, ${now})`
    return name
  },
)

export const logKeys = (sql: PgClient.PgClient, vault: Vault["Service"]) => {
  const opened = new Map<string, KeyObject>()

  /** The private keys that sign, the oldest first. */
  const signing = Effect.gen(function* () {
    const rows = yield* sql<KeyRow>`
      select verifier_key, private_key, vault_kid from log_keys
      where retired_at is null order by created_at, verifier_key`
    if (rows.length === 0) return yield* Effect.die(new Error("The log has no key"))
    for (const { private_key: bytes, vault_kid: kid, verifier_key: name } of rows) {
      if (opened.has(name)) continue
      opened.set(name, createPrivateKey(Redacted.value(vault.open({ kid, bytes }, cellOf(name)))))
    }
    for (const name of opened.keys()) {
      if (!rows.some(({ verifier_key }) => verifier_key === name)) opened.delete(name)
    }
    return rows.map(({ verifier_key }) => opened.get(verifier_key)!)
  })

  /** All keys that the log has or had, as verifiers are told them. */
  const known = Effect.map(
    sql<{ key: string }>`select verifier_key as key from log_keys`,
    (rows) => rows.map(({ key }) => key),
  )

  return { signing, known }
}
