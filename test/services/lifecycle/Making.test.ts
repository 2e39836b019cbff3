import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { calculateJwkThumbprint } from "jose"
import { generateKeyPairSync } from "node:crypto"
import { typeable } from "../../../services/lifecycle/Keys/Making.ts"

const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 512 })

it.effect("a key whose thumbprint begins with a hyphen is made anew", () =>
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
