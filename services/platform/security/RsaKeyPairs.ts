/** RSA key pairs of 2048 bits, which every verifier supports: for lifecycle messages (RS256) and DKIM (RFC 6376). */
import { Context, Effect } from "effect"
import { generateKeyPair, type KeyObject } from "node:crypto"

export interface RsaKeyPair {
  readonly publicKey: KeyObject
  readonly privateKey: KeyObject
}

const generate: Effect.Effect<RsaKeyPair> = Effect.callback((resume) => {
  generateKeyPair("rsa", { modulusLength: 2048 }, (error, publicKey, privateKey) => {
    resume(error === null ? Effect.succeed({ publicKey, privateKey }) : Effect.die(error))
  })
})

/**
 * Makes a new pair each time. It takes 100 to 350 ms of a core: never run it inside a transaction or under a lock. Tests
 * provide pairs that were made once for all of their databases (TestRsaKeys).
 */
export class RsaKeyPairs extends Context.Reference<Effect.Effect<RsaKeyPair>>(
  "bailiwick/services/platform/security/RsaKeyPairs",
  { defaultValue: () => generate },
) {}
