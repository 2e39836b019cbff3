/**
 * Secrets at rest: AES-256-GCM under a key ring, the key's id beside each ciphertext.
 *
 * A ciphertext opens only in the cell for which it was sealed: table, column, row and kid are bound into it. Each purpose
 * has a key of its own (HKDF), so the values computed for one purpose reveal nothing about another. The database stores
 * a check value of every key; a process whose ring lacks a key, or has another key under its kid, does not start, and a
 * ring is made only for a database that has no keys. `open` and `seal` are synchronous and take some microseconds.
 */
import { Clock, Context, Effect, Layer, Redacted } from "effect"
import { createCipheriv, createDecipheriv, randomBytes, timingSafeEqual } from "node:crypto"
import { lock } from "../database/AdvisoryLocks.ts"
import { Database } from "../database/Database.ts"
import { inTurn } from "../database/RetryOnLockTimeout.ts"
import type { Ring } from "./KeyRing.ts"
import { checkValue, deriveKey, makeRing, parseRing, readRing, VaultError } from "./KeyRing.ts"

export { VaultError } from "./KeyRing.ts"

export interface VaultConfig {
  /** The ring itself (BAILIWICK_KEYS); used instead of the file. */
  readonly keys?: Redacted.Redacted
  /** The ring's file, which is made for an empty database (BAILIWICK_KEYS_FILE). */
  readonly file: string
}

/** The database cell that stores a ciphertext. `row` is the row's id. */
export interface VaultCell {
  readonly table: string
  readonly column: string
  readonly row: string
}

export interface Sealed {
  readonly kid: string
  /** Nonce (12), ciphertext, tag (16). */
  readonly bytes: Uint8Array
}

export interface DerivedKey {
  readonly kid: string
  readonly key: Redacted.Redacted<Uint8Array>
}

export class Vault extends Context.Service<Vault, {
  readonly seal: (plaintext: Redacted.Redacted, cell: VaultCell) => Sealed
  /**
   * Throws VaultError where kid, cell or bytes are not those of `seal`: a defect, since only this program writes them.
   */
  readonly open: (sealed: Sealed, cell: VaultCell) => Redacted.Redacted
  /**
   * 32 bytes for `purpose` from the active key, or from `kid` (throws VaultError where the ring lacks it). Store the
   * kid with every value that must outlive a change of keys.
   */
  readonly derive: (purpose: string, kid?: string) => DerivedKey
}>()("bailiwick/services/platform/security/Vault") {
  /** Fails with one line that says why this process must not start. */
  static readonly layer = (config: VaultConfig) => Layer.effect(Vault, Effect.map(admitted(config), make))
}

const attempt = <A>(thunk: () => A) =>
  Effect.try({
    try: thunk,
    catch: (error) => error instanceof VaultError ? error : new VaultError({ message: String(error) }),
  })

interface KnownKey {
  readonly kid: string
  readonly check_value: Uint8Array
}

/** Why this ring does not fit the database's keys, or null. */
const faultOf = (ring: Ring, known: ReadonlyArray<KnownKey>): string | null => {
  for (const { kid, check_value } of known) {
    const key = ring.keys.get(kid)
    if (key === undefined) return `the ring lacks key ${kid}, under which this database has secrets`
    if (!timingSafeEqual(checkValue(kid, key), check_value)) {
      return `the ring's key ${kid} is not this database's key of that name: use the ring that belongs to this database`
    }
  }
  return null
}

/** The ring of this process, checked against the database: one process at a time, so that only one makes a ring. */
const admitted = Effect.fnUntraced(function* (config: VaultConfig) {
  const { sql } = yield* Database
  const given = yield* attempt(() =>
    config.keys === undefined ? readRing(config.file) : parseRing(config.keys, "BAILIWICK_KEYS")
  )
  return yield* Effect.gen(function* () {
    yield* lock(sql, "vault")
    const known = yield* sql<{ kid: string; check_value: Uint8Array }>`select kid, check_value from vault_keys`
    // The file may have been made by another process while this one waited.
    const ring = given ??
      (yield* attempt(() => readRing(config.file) ?? (known.length === 0 ? makeRing(config.file) : null)))
    if (ring === null) {
      return yield* new VaultError({
        message: `BAILIWICK_KEYS_FILE: ${config.file} is missing, and this database has secrets under key ` +
          `${known[0]!.kid}: put the ring back, or name it in BAILIWICK_KEYS`,
      })
    }
    const fault = faultOf(ring, known)
    if (fault !== null) return yield* new VaultError({ message: `BAILIWICK_KEYS_FILE: ${fault}` })
    const now = new Date(yield* Clock.currentTimeMillis)
    for (const [kid, key] of ring.keys) {
      yield* sql`insert into vault_keys (kid, check_value, created_at) values (${kid}, ${checkValue(kid, key)}, ${now})
        on conflict (kid) do nothing`
    }
    return ring
  }).pipe(sql.withTransaction, inTurn)
})

const bound = ({ table, column, row }: VaultCell, kid: string) => Buffer.from(JSON.stringify([table, column, row, kid]))

const make = (ring: Ring) => {
  const sealing = new Map(Array.from(ring.keys, ([kid, key]) => [kid, deriveKey(key, "seal")]))
  // One entry for each purpose and key. Without this map, deriving a key cost more than the work with it.
  const derived = new Map<string, DerivedKey>()

  return Vault.of({
    seal: (plaintext, cell) => {
      const kid = ring.active
      const nonce = randomBytes(12)
      const cipher = createCipheriv("aes-256-gcm", sealing.get(kid)!, nonce).setAAD(bound(cell, kid))
      const body = Buffer.concat([cipher.update(Redacted.value(plaintext), "utf8"), cipher.final()])
      return { kid, bytes: Buffer.concat([nonce, body, cipher.getAuthTag()]) }
    },
    open: ({ kid, bytes }, cell) => {
      const key = sealing.get(kid)
      if (key === undefined) throw new VaultError({ message: `the ring lacks key ${kid}` })
      try {
        const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, 12), { authTagLength: 16 })
          .setAAD(bound(cell, kid)).setAuthTag(bytes.subarray(-16))
        return Redacted.make(decipher.update(bytes.subarray(12, -16), undefined, "utf8") + decipher.final("utf8"))
      } catch {
        throw new VaultError({ message: `${cell.table}.${cell.column} does not open under key ${kid}` })
      }
    },
    derive: (purpose, kid = ring.active) => {
      const name = JSON.stringify([purpose, kid])
      const known = derived.get(name)
      if (known !== undefined) return known
      const key = ring.keys.get(kid)
      if (key === undefined) throw new VaultError({ message: `the ring lacks key ${kid}` })
      const made = { kid, key: Redacted.make<Uint8Array>(deriveKey(key, `derived:${purpose}`)) }
      derived.set(name, made)
      return made
    },
  })
}
