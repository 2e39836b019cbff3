/**
 * DKIM key pairs (RFC 6376; Ed25519: RFC 8463). A pair is generated when a transfer that asks for one is accepted or
 * forced, so that its DNS record can be published before the domain moves. The Vault seals the private key in the
 * transaction of the acceptance: killed before the commit there is no key, killed after it the completion uses this
 * key. A reversed transfer deletes its key.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect, Redacted } from "effect"
import type { SqlError } from "effect/sql"
import { Buffer } from "node:buffer"
import { generateKeyPairSync, type KeyObject, randomBytes } from "node:crypto"
import type { DomainId, TransferId } from "../../schemas/BrandedIds.ts"
import { insertion, type Kind, write } from "../platform/database/UnitOfWork.ts"
import { Ids } from "../platform/Ids.ts"
import { RsaKeyPairs } from "../platform/security/RsaKeyPairs.ts"
import type { Vault } from "../platform/security/Vault.ts"

/** `rsa`: 2048 bits, which every verifier supports. */
export type DkimAlgorithm = "rsa" | "ed25519"

/** The public part of a pair. */
export interface DkimKey {
  readonly algorithm: DkimAlgorithm
  readonly selector: string
  /** The value of `p=` in the DNS record. */
  readonly publicKey: string
}

export interface DkimPair extends DkimKey {
  /** PKCS #8, PEM. */
  readonly privateKey: Redacted.Redacted
}

// RFC 6376 publishes a SubjectPublicKeyInfo, RFC 8463 only the 32 bytes of the key.
const published = (algorithm: DkimAlgorithm, key: KeyObject): string => {
  const der = key.export({ type: "spki", format: "der" })
  return (algorithm === "rsa" ? der : der.subarray(-32)).toString("base64")
}

const ed25519 = Effect.sync(() => generateKeyPairSync("ed25519"))

/** Generates a pair with a new selector. RSA takes 100 ms of CPU and more: never call it inside a transaction. */
export const makePair = Effect.fnUntraced(function* (algorithm: DkimAlgorithm): Effect.fn.Return<DkimPair> {
  const { privateKey, publicKey } = yield* algorithm === "rsa" ? yield* RsaKeyPairs : ed25519
  return {
    algorithm,
    selector: `bw-${randomBytes(6).toString("hex")}`,
    publicKey: published(algorithm, publicKey),
    privateKey: Redacted.make(String(privateKey.export({ type: "pkcs8", format: "pem" }))),
  }
})

/** The TXT record that publishes a key. */
export interface DkimRecord {
  readonly name: string
  readonly value: string
}

export const recordName = (domainName: string, selector: string) => `${selector}._domainkey.${domainName}`

export const recordOf = (domainName: string, { algorithm, publicKey, selector }: DkimKey): DkimRecord => ({
  name: recordName(domainName, selector),
  value: `v=DKIM1; k=${algorithm}; p=${publicKey}`,
})

interface KeyedTransfer {
  readonly domainId: DomainId
  readonly id: TransferId
}

/** The keys of transfers, by the transfers' ids. */
export const keysOf = (
  sql: PgClient.PgClient,
  transfers: ReadonlyArray<KeyedTransfer>,
): Effect.Effect<ReadonlyMap<TransferId, DkimKey>, SqlError.SqlError> =>
  transfers.length === 0 ? Effect.succeed(new Map()) : Effect.map(
    sql<DkimKey & { readonly id: TransferId }>`
      select transfer_id::text as id, algorithm, selector, public_key as "publicKey" from dkim_keys
      where domain_id = any(${transfers.map(({ domainId }) => domainId)}::uuid[])
        and transfer_id = any(${transfers.map(({ id }) => id)}::uuid[])`,
    (rows) => new Map(rows.map(({ id, ...key }) => [id, key])),
  )

/** The key of a transfer, or null. */
export const keyOf = (
  sql: PgClient.PgClient,
  transfer: KeyedTransfer,
): Effect.Effect<DkimKey | null, SqlError.SqlError> =>
  Effect.map(keysOf(sql, [transfer]), (keys) => keys.get(transfer.id) ?? null)

/** Deletes the keys of transfers that do not take effect, in the current transaction (UnitOfWork.ts). */
export const dropKeys = (
  sql: PgClient.PgClient,
  transfers: ReadonlyArray<KeyedTransfer>,
): Effect.Effect<void, SqlError.SqlError> => write(sql, dropped(sql), transfers)

const dropped = (sql: PgClient.PgClient): Kind<KeyedTransfer> => ({
  name: "dropped_dkim_keys",
  parts: (transfers) => [{
    name: "dropped_dkim_keys",
    statement: sql`
      delete from dkim_keys
      where domain_id = any(${transfers.map(({ domainId }) => domainId)}::uuid[])
        and transfer_id = any(${transfers.map(({ id }) => id)}::uuid[])`,
  }],
})

/** Stores a pair for a transfer's domain, in the current transaction (UnitOfWork.ts). */
export const keepPair = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  vault: Vault["Service"],
  pair: DkimPair,
  transfer: { readonly domainId: DomainId; readonly transferId: TransferId; readonly now: number },
) {
  const id = yield* (yield* Ids).next
  const sealed = vault.seal(pair.privateKey, { table: "dkim_keys", column: "private_key", row: id })
  yield* write(sql, kept(sql), [{
    id,
    domain_id: transfer.domainId,
    transfer_id: transfer.transferId,
    selector: pair.selector,
    algorithm: pair.algorithm,
    public_key: pair.publicKey,
    private_kid: sealed.kid,
    private_key: `\\x${Buffer.from(sealed.bytes).toString("hex")}`,
    created_at: new Date(transfer.now),
  }])
})

const kept = (sql: PgClient.PgClient) =>
  insertion(sql, "dkim_keys", {
    id: "uuid",
    domain_id: "uuid",
    transfer_id: "uuid",
    selector: "text",
    algorithm: "text",
    public_key: "text",
    private_kid: "text",
    private_key: "bytea",
    created_at: "timestamptz",
  })
