import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Layer, Redacted } from "effect"
import { createDecipheriv, createHmac } from "node:crypto"
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Database } from "../../../../services/platform/database/Database.ts"
import type { VaultConfig } from "../../../../services/platform/security/Vault.ts"
import { Vault, VaultError } from "../../../../services/platform/security/Vault.ts"
import { TestDatabase } from "../../../support/TestDatabase.ts"

const one = Buffer.alloc(32, 1).toString("base64")
const two = Buffer.alloc(32, 2).toString("base64")
const ring = (active: string, keys: Record<string, string>) => Redacted.make(JSON.stringify({ active, keys }))

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "bailiwick-vault-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true })),
)

/** A process that starts with this key ring on the current database. */
const start = (config: VaultConfig) =>
  Vault.use((vault) => Effect.succeed(vault)).pipe(Effect.provide(Layer.fresh(Vault.layer(config))))
const withKeys = (keys: Redacted.Redacted) => start({ keys, file: "/nowhere" })
const refusal = <E extends Error, R>(started: Effect.Effect<unknown, E, R>) =>
  Effect.map(Effect.flip(started), (error) => {
    assert.instanceOf(error, VaultError)
    assert.notInclude(error.message, "\n")
    return error.message
  })

const onDatabase = <A, E, R>(use: Effect.Effect<A, E, R>) =>
  Effect.provide(Effect.scoped(use), Layer.fresh(TestDatabase.layer))

const cell = { table: "webhooks", column: "secret", row: "w1" }
const secret = Redacted.make("whsec_äöü")

/** RFC 5869 over node's HMAC: one block, salt `bailiwick`. */
const hkdf = (key: Buffer, info: string) => {
  const prk = createHmac("sha256", "bailiwick").update(key).digest()
  return createHmac("sha256", prk).update(info).update(Buffer.from([1])).digest()
}

describe("Vault", () => {
  it.live("opens what it sealed, only for its cell, under its key and unchanged", () =>
    onDatabase(Effect.gen(function* () {
      const vault = yield* withKeys(ring("k1", { k1: one, k2: two }))
      const sealed = vault.seal(secret, cell)
      assert.strictEqual(sealed.kid, "k1")
      assert.strictEqual(Redacted.value(vault.open(sealed, cell)), "whsec_äöü")
      assert.notDeepEqual(vault.seal(secret, cell).bytes, sealed.bytes)
      const flipped = Uint8Array.from(sealed.bytes)
      flipped[14]! ^= 1
      for (
        const [wrong, at] of [
          [sealed, { ...cell, row: "w2" }],
          [sealed, { ...cell, column: "old_secret" }],
          [sealed, { ...cell, table: "accounts" }],
          [{ ...sealed, kid: "k2" }, cell],
          [{ ...sealed, kid: "k3" }, cell],
          [{ ...sealed, bytes: flipped }, cell],
          [{ ...sealed, bytes: sealed.bytes.subarray(0, 20) }, cell],
        ] as const
      ) assert.throws(() => vault.open(wrong, at), VaultError)
    })))

  it.live("seals by AES-256-GCM with nonce, ciphertext and tag, under HKDF of the ring's key", () =>
    onDatabase(Effect.gen(function* () {
      const vault = yield* withKeys(ring("k1", { k1: one }))
      const { bytes } = vault.seal(secret, cell)
      const key = hkdf(Buffer.alloc(32, 1), "seal")
      const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, 12))
        .setAAD(Buffer.from(`["webhooks","secret","w1","k1"]`)).setAuthTag(bytes.subarray(-16))
      assert.strictEqual(
        decipher.update(bytes.subarray(12, -16), undefined, "utf8") + decipher.final("utf8"),
        "whsec_äöü",
      )
      const derived = vault.derive("one-shot-tokens")
      assert.strictEqual(derived.kid, "k1")
      assert.deepEqual(
        Buffer.from(Redacted.value(derived.key)),
        hkdf(Buffer.alloc(32, 1), "derived:one-shot-tokens"),
      )
      assert.notDeepEqual(Redacted.value(vault.derive("other").key), Redacted.value(derived.key))
      assert.throws(() => vault.derive("one-shot-tokens", "k9"), VaultError)
    })))

  it.live("makes a key ring for an empty database, readable by its owner only, and finds it again", () =>
    onDatabase(Effect.gen(function* () {
      const at = yield* folder
      const file = join(at, "keys.json")
      // Concurrent starts make one key ring.
      const [a, b] = yield* Effect.all([start({ file }), start({ file })], { concurrency: 2 })
      assert.deepStrictEqual(readdirSync(at), ["keys.json"])
      assert.strictEqual(statSync(file).mode & 0o777, 0o600)
      const sealed = a.seal(secret, cell)
      assert.strictEqual(Redacted.value(b.open(sealed, cell)), "whsec_äöü")
      const again = yield* withKeys(Redacted.make(readFileSync(file, "utf8")))
      assert.strictEqual(Redacted.value(again.open(sealed, cell)), "whsec_äöü")
      const { sql } = yield* Database
      assert.deepStrictEqual(yield* sql`select kid from vault_keys`, [{ kid: sealed.kid }])
    })))

  it.live("waits for another start for longer than a statement waits for a lock", () =>
    onDatabase(Effect.gen(function* () {
      const { owner } = yield* Database
      const held = yield* Deferred.make<void>()
      const slow = owner`select pg_advisory_xact_lock(hashtext('bailiwick vault'))`.pipe(
        Effect.andThen(Deferred.succeed(held, undefined)),
        Effect.andThen(owner`select pg_sleep(2.5)`),
        owner.withTransaction,
      )
      const { ownerUrl, url } = yield* TestDatabase
      // With the limits of a program: those of the test's own database are longer.
      const started = Effect.andThen(Deferred.await(held), withKeys(ring("k1", { k1: one }))).pipe(
        Effect.provide(Layer.fresh(Database.layer({ url, ownerUrl, maxConnections: 2 }))),
      )
      const [vault] = yield* Effect.all([started, slow], { concurrency: 2 })
      assert.strictEqual(vault.seal(secret, cell).kid, "k1")
    })))

  it.live("refuses a ring that is missing, world-readable, lacks a key or holds another under its name", () =>
    onDatabase(Effect.gen(function* () {
      const at = yield* folder
      const file = join(at, "keys.json")
      yield* withKeys(ring("k1", { k1: one, k2: two }))
      assert.match(yield* refusal(withKeys(ring("k1", { k1: one }))), /lacks key k2/)
      assert.match(
        yield* refusal(withKeys(ring("k1", { k1: two, k2: two }))),
        /key k1 is not this database's key of that name/,
      )
      assert.match(yield* refusal(start({ file })), /is missing/)
      assert.isFalse(existsSync(file))
      // An additional key announces its successor.
      yield* withKeys(ring("k3", { k1: one, k2: two, k3: Buffer.alloc(32, 3).toString("base64") }))
      assert.match(yield* refusal(withKeys(ring("k1", { k1: one, k2: two }))), /lacks key k3/)
    })))

  it.live("names the fault of a ring without showing it", () =>
    onDatabase(Effect.gen(function* () {
      for (
        const [keys, fault] of [
          [Redacted.make("hunter2"), /is not a key ring/],
          [ring("k1", { k1: "aHVudGVyMg==" }), /7 bytes instead of 32/],
          [ring("k2", { k1: one }), /active key k2/],
          [ring("k 1", { "k 1": one }), /is not a key ring/],
        ] as const
      ) {
        const message = yield* refusal(withKeys(keys))
        assert.match(message, fault)
        assert.notMatch(message, /hunter2|aHVudGVyMg/)
      }
      const file = join(yield* folder, "keys.json")
      yield* start({ file })
      chmodSync(file, 0o644)
      assert.match(yield* refusal(start({ file })), /chmod 600/)
    })))
})
