import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { createHash } from "node:crypto"
import { OneTimeTokens } from "../../../../services/platform/security/OneTimeTokens.ts"
import { Vault, VaultError } from "../../../../services/platform/security/Vault.ts"
import { TestDatabase } from "../../../support/TestDatabase.ts"

const keys = { k1: Buffer.alloc(32, 1).toString("base64"), k2: Buffer.alloc(32, 2).toString("base64") }

const tokensOf = (active: string, ring: Partial<typeof keys>) =>
  OneTimeTokens.use((tokens) => Effect.succeed(tokens)).pipe(
    Effect.provide(Layer.fresh(OneTimeTokens.layer.pipe(
      Layer.provide(Vault.layer({ keys: Redacted.make(JSON.stringify({ active, keys: ring })), file: "/nowhere" })),
    ))),
  )

describe("OneShotTokens", () => {
  it.live("a row's token can be derived again, also after a change of keys, and differs from other rows'", () =>
    Effect.gen(function* () {
      const tokens = yield* tokensOf("k1", { k1: keys.k1 })
      const row = tokens.issue("transfer-accept", "t1")
      const token = Redacted.value(tokens.derive({ kind: "transfer-accept", id: "t1", ...row }))
      assert.match(token, /^[A-Za-z0-9_-]{43}$/)
      assert.deepStrictEqual(Buffer.from(row.hash), createHash("sha256").update(token).digest())
      assert.deepStrictEqual(tokens.hash(token), row.hash)
      assert.strictEqual(row.kid, "k1")
      assert.notDeepEqual(tokens.issue("transfer-accept", "t1").hash, row.hash)

      const rotated = yield* tokensOf("k2", keys)
      assert.strictEqual(rotated.issue("transfer-accept", "t1").kid, "k2")
      const derived = (kind: string, id: string, kid = row.kid) =>
        Redacted.value(rotated.derive({ kind, id, kid, nonce: row.nonce }))
      assert.strictEqual(derived("transfer-accept", "t1"), token)
      const others = [
        derived("transfer-stop", "t1"),
        derived("transfer-accept", "t2"),
        derived("transfer-accep", "tt1"),
        derived("transfer-accept", "t1", "k2"),
      ]
      assert.strictEqual(new Set([token, ...others]).size, 5)
      assert.throws(() => derived("transfer", "accept\0t1"), /0x00/)
      assert.throws(() => derived("transfer-accept", "t1", "k3"), VaultError)
      assert.notInclude(String(rotated.derive({ kind: "transfer-accept", id: "t1", ...row })), token)
    }).pipe(Effect.provide(TestDatabase.layer), Effect.scoped))
})
