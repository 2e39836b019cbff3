/**
 * Keys that the product has committed to, by their RFC 7638 thumbprints. The served key set only says what a thumbprint
 * stands for, and is believed because the thumbprint is computed again: a key that appears there and was never committed
 * to is nobody's.
 */
import { calculateJwkThumbprint, type CryptoKey, importJWK, type JWK } from "jose"
import { Refusal } from "./Refusal.ts"

export interface PinnedKeys {
  readonly pinned: (kid: string) => boolean
  /** The public key of a pinned thumbprint. Fails with Refusal where the served set does not hold it. */
  readonly key: (kid: string) => Promise<CryptoKey>
}

/** Gives a set of pinned keys; keys that were found once are remembered by it. */
export const keyRing = (
  served: () => Promise<{ readonly keys: ReadonlyArray<JWK> }>,
) => {
  const known = new Map<string, CryptoKey>()

  const learn = async (): Promise<void> => {
    for (const { e, kty, n } of (await served()).keys) {
      if (kty !== "RSA" || e === undefined || n === undefined) continue
      const jwk = { kty, n, e }
      const thumbprint = await calculateJwkThumbprint(jwk)
      if (!known.has(thumbprint)) {
        known.set(thumbprint, await importJWK(jwk, "RS256") as CryptoKey)
      }
    }
  }

  return (kids: ReadonlyArray<string>): PinnedKeys => {
    const pinned = new Set(kids)
    return {
      pinned: (kid) => pinned.has(kid),
      key: async (kid) => {
        if (!known.has(kid)) await learn()
        return known.get(kid) ??
          Promise.reject(new Refusal("key", "nobody serves that key"))
      },
    }
  }
}
