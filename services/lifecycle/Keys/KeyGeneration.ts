/** Makes, stores and uses signing keys: RSA, RS256, named by their RFC 7638 thumbprint, sealed at rest. */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect, Redacted } from "effect"
import { calculateJwkThumbprint, CompactSign, exportJWK, type JWK } from "jose"
import { createPrivateKey, type KeyObject } from "node:crypto"
import { BoundedMap } from "../../platform/BoundedMap.ts"
import { RsaKeyPairs } from "../../platform/security/RsaKeyPairs.ts"
import type { Vault } from "../../platform/security/Vault.ts"
import { openSsl } from "./OpenSsl.ts"
import { lock } from "../../platform/database/AdvisoryLocks.ts"

export type KeyState = "announced" | "published" | "active" | "retiring" | "retired" | "compromised"

export interface KeyRow {
  readonly kid: string
  readonly state: KeyState
  readonly succession: number
  readonly changed_at: Date
}

/** Signs payloads under one key. */
export interface Signer {
  readonly kid: string
  /** Compact JWS (RFC 7515) of a payload; `typ` without `application/`. */
  readonly sign: (typ: string, payload: string) => Promise<string>
}

export interface KeyPair {
  /** The RFC 7638 thumbprint of the public key. */
  readonly kid: string
  readonly publicJwk: JWK
  readonly privateKey: KeyObject
}

/** Every change of a key or of a key's state holds this lock to the end of its transaction. */
export const lockKeys = (sql: PgClient.PgClient) => lock(sql, "signingKeys")

type Unnamed = Omit<KeyPair, "kid">

const anyPair = Effect.gen(function* () {
  const { privateKey, publicKey } = yield* yield* RsaKeyPairs
  return { publicJwk: yield* Effect.promise(() => exportJWK(publicKey)), privateKey } satisfies Unnamed
})

/** A key pair whose kid an operator can type (`cli keys retire`): a hyphen in front would be read as a flag. */
export const typeable = (any: Effect.Effect<Unnamed>): Effect.Effect<KeyPair> =>
  Effect.flatMap(
    any,
    (pair) => Effect.map(Effect.promise(() => calculateJwkThumbprint(pair.publicJwk)), (kid) => ({ ...pair, kid })),
  ).pipe(Effect.repeat({ while: ({ kid }) => kid.startsWith("-") }))

/** Makes a key pair. RSA keys take long to make, so call this before taking a lock. */
export const makePair: Effect.Effect<KeyPair> = typeable(anyPair)

const cellOf = (kid: string) => ({ table: "signing_keys", column: "private_key", row: kid })
const encoder = new TextEncoder()
const encoded = (bytes: Uint8Array | string) => Buffer.from(bytes).toString("base64url")

/** Signs compact JWS with a private key: by OpenSSL where it can be had, else by `jose`. */
export const signing = (kid: string, key: KeyObject): Signer["sign"] => {
  const fast = openSsl(key)
  if (fast === null) {
    return (typ, payload) =>
      new CompactSign(encoder.encode(payload)).setProtectedHeader({ alg: "RS256", typ, kid }).sign(key)
  }
  return async (typ, payload) => {
    const input = `${encoded(JSON.stringify({ alg: "RS256", typ, kid }))}.${encoded(payload)}`
    return `${input}.${encoded(await fast(encoder.encode(input)))}`
  }
}

/** Signers that are kept open: only a few keys are in use at a time, however often keys change. */
const mostOpened = 16

export const keyStore = (sql: PgClient.PgClient, vault: Vault["Service"]) => {
  const opened = new BoundedMap<string, Signer>(mostOpened)

  /** Adds a key behind all others, under `lockKeys`; returns its kid. */
  const add = Effect.fnUntraced(function* (state: KeyState, { kid, privateKey, publicJwk }: KeyPair) {
    const pem = Redacted.make(String(privateKey.export({ type: "pkcs8", format: "pem" })))
    const sealed = vault.seal(pem, cellOf(kid))
    const now = new Date(yield* Clock.currentTimeMillis)
    const open = { ...publicJwk, kid, alg: "RS256", use: "sig" }
    yield* sql`
      insert into signing_keys (kid, state, succession, public_jwk, private_key, vault_kid, created_at, changed_at)
      select ${kid}, ${state}, coalesce(max(succession), 0) + 1, ${sql.json(open)}, ${sealed.bytes}, ${sealed.kid},
        ${now}, ${now} from signing_keys`
    return kid
  })

  /** The signer of a key; null where its private key is gone. The caller has to know whether the key may be used. */
  const signer = Effect.fnUntraced(function* (kid: string) {
    const known = opened.get(kid)
    if (known !== undefined) return known
    const [row] = yield* sql<{ private_key: Uint8Array; vault_kid: string }>`
      select private_key, vault_kid from signing_keys where kid = ${kid} and private_key is not null`
    if (row === undefined) return null
    const pem = vault.open({ kid: row.vault_kid, bytes: row.private_key }, cellOf(kid))
    const made: Signer = { kid, sign: signing(kid, createPrivateKey(Redacted.value(pem))) }
    opened.set(kid, made)
    return made
  })

  return { add, signer, opened: () => opened.size }
}
