/**
 * DKIM key pairs (RFC 6376; Ed25519: RFC 8463). The private half is sealed by the Vault in the transaction that gives
 * the domain its new selector; selector and public half are what the platform publishes in the DNS.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect, Redacted } from "effect"
import { generateKeyPair, type KeyObject, randomBytes } from "node:crypto"
import { Ids } from "../platform/Ids.ts"
import type { Vault } from "../platform/Vault.ts"

/** `rsa` is 2048 bits, which every verifier knows. */
export type DkimAlgorithm = "rsa" | "ed25519"

export interface DkimPair {
  readonly algorithm: DkimAlgorithm
  readonly selector: string
  /** The `p=` of the DNS record. */
  readonly publicKey: string
  /** PKCS #8, PEM. */
  readonly privateKey: Redacted.Redacted
}

// RFC 6376 publishes a SubjectPublicKeyInfo, RFC 8463 the 32 bytes of the key alone.
const published = (algorithm: DkimAlgorithm, key: KeyObject): string => {
  const der = key.export({ type: "spki", format: "der" })
  return (algorithm === "rsa" ? der : der.subarray(-32)).toString("base64")
}

/** A new pair under a new selector. Some 100 ms of CPU for RSA: never inside a transaction. */
export const makePair = (algorithm: DkimAlgorithm): Effect.Effect<DkimPair> =>
  Effect.callback((resume) => {
    const done = (error: Error | null, publicKey: KeyObject, privateKey: KeyObject) =>
      resume(
        error === null
          ? Effect.succeed({
            algorithm,
            selector: `bw-${randomBytes(6).toString("hex")}`,
            publicKey: published(algorithm, publicKey),
            privateKey: Redacted.make(String(privateKey.export({ type: "pkcs8", format: "pem" }))),
          })
          : Effect.die(error),
      )
    if (algorithm === "rsa") generateKeyPair("rsa", { modulusLength: 2048 }, done)
    else generateKeyPair("ed25519", {}, done)
  })

/** Keeps a pair for a domain, in the current transaction. */
export const keepPair = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  vault: Vault["Service"],
  pair: DkimPair,
  place: { readonly domainId: string; readonly transferId: string; readonly now: number },
) {
  const id = yield* (yield* Ids).next
  const sealed = vault.seal(pair.privateKey, { table: "dkim_keys", column: "private_key", row: id })
  yield* sql`insert into dkim_keys ${
    sql.insert({
      id,
      domain_id: place.domainId,
      transfer_id: place.transferId,
      selector: pair.selector,
      algorithm: pair.algorithm,
      public_key: pair.publicKey,
      private_kid: sealed.kid,
      private_key: sealed.bytes,
      created_at: new Date(place.now),
    })
  }`
})
