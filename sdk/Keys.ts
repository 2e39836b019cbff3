/**
 * Keys that the product has committed to, by their RFC 7638 thumbprints. The served key set only says what a thumbprint
 * stands for, and is believed because the thumbprint is computed again: a key that appears there and was never committed
 * to is nobody's, and one that was committed to and is served no more signs nothing any more, ten minutes later at most.
 */
import { createHash } from "node:crypto"
import { Refusal } from "./Refusal.ts"
import { type PublicKey, rs256, type RsaKey } from "./Rs256.ts"

/** A key of a served set, with the members that the set gives it. */
export interface Jwk {
  readonly kty?: unknown
  readonly n?: unknown
  readonly e?: unknown
}

export interface PinnedKeys {
  readonly pinned: (kid: string) => boolean
  /** The public key of a pinned thumbprint. Fails with Refusal where the served set does not hold it. */
  readonly key: (kid: string) => Promise<PublicKey>
}

const freshMillis = 600_000

const thumbprintOf = ({ e, n }: RsaKey): string =>
  createHash("sha256").update(JSON.stringify({ e, kty: "RSA", n })).digest("base64url")

/** Gives a set of pinned keys; keys that were found once are remembered by it for a while. `now`: milliseconds. */
export const keyRing = (
  served: () => Promise<{ readonly keys: ReadonlyArray<Jwk> }>,
  now: () => number = Date.now,
) => {
  let known: ReadonlyMap<string, PublicKey> = new Map()
  let learnedAt = -Infinity
  let learning: Promise<void> | null = null

  const learn = async (): Promise<void> => {
    const found = new Map<string, PublicKey>()
    for (const { e, kty, n } of (await served()).keys) {
      if (kty !== "RSA" || typeof e !== "string" || typeof n !== "string") continue
      const thumbprint = thumbprintOf({ e, n })
      const key = known.get(thumbprint) ?? rs256({ e, n })
      if (key !== null) found.set(thumbprint, key)
    }
    known = found
    learnedAt = now()
  }

  return (kids: ReadonlyArray<string>): PinnedKeys => {
    const pinned = new Set(kids)
    return {
      pinned: (kid) => pinned.has(kid),
      key: async (kid) => {
        if (!known.has(kid) || now() - learnedAt > freshMillis) {
          // Whoever needs it meanwhile waits for the same answer.
          await (learning ??= learn().finally(() => {
            learning = null
          }))
        }
        return known.get(kid) ??
          Promise.reject(new Refusal("key", "nobody serves that key"))
      },
    }
  }
}
