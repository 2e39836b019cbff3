/**
 * The keys that lifecycle messages are signed with: RSA, RS256, apart from whatever signs OIDC tokens (specification 000,
 * Authentication 7). A kid is the RFC 7638 thumbprint. Private keys are sealed by the Vault.
 *
 * An installation begins with one active key and the two that come after it, announced by their thumbprints before they
 * are ever used: a consumer accepts only a kid that it had committed earlier (RULES, Lifecycle).
 */
import { Clock, Context, Effect, Layer, Redacted } from "effect"
import type { SqlError } from "effect/sql"
import { calculateJwkThumbprint, CompactSign, exportJWK, type JWK } from "jose"
import { createPrivateKey, generateKeyPair, type KeyObject } from "node:crypto"
import { Database } from "../platform/Database.ts"
import { Vault } from "../platform/Vault.ts"

const lock = 0x62_61_69_16
const encoder = new TextEncoder()

export type KeyState = "announced" | "published" | "active" | "retiring" | "retired" | "compromised"

interface KeyRow {
  readonly kid: string
  readonly state: KeyState
  readonly public_jwk: JWK
  readonly private_key: Uint8Array
  readonly vault_kid: string
}

/** Signs payloads under one key. */
export interface Signer {
  readonly kid: string
  /** Compact JWS (RFC 7515) of a payload; `typ` without `application/`. */
  readonly sign: (typ: string, payload: string) => Promise<string>
}

interface KeyPair {
  readonly publicKey: KeyObject
  readonly privateKey: KeyObject
}

const makePair = Effect.callback<KeyPair>((resume) => {
  generateKeyPair(
    "rsa",
    { modulusLength: 2048 },
    (error, publicKey, privateKey) =>
      resume(error === null ? Effect.succeed({ publicKey, privateKey }) : Effect.die(error)),
  )
})

const place = (kid: string) => ({ table: "signing_keys", column: "private_key", row: kid })

export class SigningKeys extends Context.Service<SigningKeys, {
  /** Makes the first keys where there are none. */
  readonly ensure: Effect.Effect<void, SqlError.SqlError>
  /** The key that signs now whatever is said to a project's consumers beside its history: snapshots, streams' own messages. */
  readonly signerOf: (projectId: string) => Effect.Effect<Signer, SqlError.SqlError>
  /** The active key. */
  readonly signer: Effect.Effect<Signer, SqlError.SqlError>
  /** What `/v1/lifecycle/jwks` serves: keys that are in use or about to be, and those that still verify. */
  readonly jwks: Effect.Effect<{ readonly keys: ReadonlyArray<JWK> }, SqlError.SqlError>
  /** The kids that a consumer may commit to: in use, still verifying, or announced. */
  readonly keySet: Effect.Effect<ReadonlyArray<string>, SqlError.SqlError>
}>()("bailiwick/services/lifecycle/SigningKeys") {
  static readonly layer = Layer.effect(
    SigningKeys,
    Effect.gen(function* () {
      const { sql } = yield* Database
      const vault = yield* Vault
      const opened = new Map<string, Signer>()

      const add = Effect.fnUntraced(function* (state: KeyState, { privateKey, publicKey }: KeyPair) {
        const jwk = yield* Effect.promise(() => exportJWK(publicKey))
        const kid = yield* Effect.promise(() => calculateJwkThumbprint(jwk))
        const pem = Redacted.make(String(privateKey.export({ type: "pkcs8", format: "pem" })))
        const sealed = vault.seal(pem, place(kid))
        const now = new Date(yield* Clock.currentTimeMillis)
        const open = { ...jwk, kid, alg: "RS256", use: "sig" }
        return yield* sql`
          insert into signing_keys (kid, state, public_jwk, private_key, vault_kid, created_at, changed_at)
          values (${kid}, ${state}, ${sql.json(open)}, ${sealed.bytes}, ${sealed.kid}, ${now}, ${now})`
      })

      const begun = Effect.map(
        sql<{ begun: boolean }>`select exists (select from signing_keys where state = 'active') as begun`,
        ([row]) => row!.begun,
      )

      const ensure = Effect.gen(function* () {
        if (yield* begun) return
        // RSA keys take their time: nobody waits for the lock meanwhile.
        const [first, ...next] = yield* Effect.all([makePair, makePair, makePair])
        yield* sql.withTransaction(Effect.gen(function* () {
          yield* sql`select pg_advisory_xact_lock(${lock})`
          if (yield* begun) return
          yield* add("active", first)
          for (const pair of next) yield* add("announced", pair)
        }))
      }).pipe(Effect.withSpan("SigningKeys.ensure"))

      const open = ({ kid, private_key, vault_kid }: KeyRow): Signer => {
        const key = createPrivateKey(Redacted.value(vault.open({ kid: vault_kid, bytes: private_key }, place(kid))))
        return {
          kid,
          sign: (typ, payload) =>
            new CompactSign(encoder.encode(payload)).setProtectedHeader({ alg: "RS256", typ, kid }).sign(key),
        }
      }

      const signer = Effect.gen(function* () {
        yield* ensure
        const [row] = yield* sql<KeyRow>`select * from signing_keys where state = 'active'`
        const known = opened.get(row!.kid) ?? open(row!)
        opened.set(row!.kid, known)
        return known
      })

      const inStates = (...states: ReadonlyArray<KeyState>) =>
        sql<Pick<KeyRow, "kid" | "public_jwk">>`
          select kid, public_jwk from signing_keys where state = any(${[...states]}::text[]) order by created_at, kid`

      return SigningKeys.of({
        ensure,
        signer,
        signerOf: () => signer,
        jwks: Effect.map(inStates("published", "active", "retiring"), (rows) => ({
          keys: rows.map(({ public_jwk }) => public_jwk),
        })),
        keySet: Effect.map(
          inStates("announced", "published", "active", "retiring"),
          (rows) => rows.map(({ kid }) => kid),
        ),
      })
    }),
  )
}
