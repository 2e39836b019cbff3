import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { calculateJwkThumbprint } from "jose"
import { generateKeyPairSync } from "node:crypto"
import { keyStore, makePair, typeable } from "../../../../services/lifecycle/Keys/KeyGeneration.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import { Vault } from "../../../../services/platform/security/Vault.ts"
import { TestDatabase } from "../../../support/TestDatabase.ts"
import { vault } from "../../../support/TestVault.ts"

const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 512 })

it.effect("a key whose thumbprint begins with a hyphen is discarded and made again", () =>
  Effect.gen(function* () {
    const named = (hyphen: boolean) =>
      Effect.gen(function* () {
        for (let n = 0;; n++) {
          const publicJwk = { kty: "RSA", e: "AQAB", n: `modulus-${n}` }
          const kid = yield* Effect.promise(() => calculateJwkThumbprint(publicJwk))
          if (kid.startsWith("-") === hyphen) return { publicJwk, kid }
        }
      })
    const hyphened = yield* named(true)
    const plain = yield* named(false)
    const made: Array<string> = []
    const any = Effect.sync(() => {
      const { kid, publicJwk } = made.length < 3 ? hyphened : plain
      made.push(kid)
      return { publicJwk, privateKey }
    })
    const pair = yield* typeable(any)
    assert.deepStrictEqual(made, [hyphened.kid, hyphened.kid, hyphened.kid, plain.kid])
    assert.deepStrictEqual(pair, { publicJwk: plain.publicJwk, privateKey, kid: plain.kid })
  }))

it.live("the program keeps at most 16 signers open, and opens any other again when needed", () =>
  Effect.gen(function* () {
    const { sql } = yield* Database
    const store = keyStore(sql, yield* Vault)
    const kids: Array<string> = []
    for (let n = 0; n < 20; n++) kids.push(yield* store.add("retiring", yield* makePair))
    const signed = Effect.forEach(
      kids,
      (kid) => Effect.flatMap(store.signer(kid), (signer) => Effect.promise(() => signer!.sign("secevent+jwt", "{}"))),
    )
    const first = yield* signed
    assert.strictEqual(store.opened(), 16)
    assert.deepStrictEqual(yield* signed, first)
    assert.strictEqual(store.opened(), 16)
  }).pipe(Effect.provide(vault.pipe(Layer.provideMerge(TestDatabase.layer)))))
