/**
 * The keys that the product has pinned, by their RFC 7638 thumbprints. The served key set only supplies the public
 * keys, and each thumbprint is computed again. A served key that is not pinned is ignored; a pinned key that is no
 * longer served is refused after ten minutes at most.
 */
import { createHash } from "node:crypto"
import { Refusal } from "./Refusal.ts"
import { type PublicKey, rs256, type RsaKey } from "./Rs256.ts"

/** A key of a served set. */
export interface Jwk {
  readonly kty?: unknown
  readonly n?: unknown
  readonly e?: unknown
}

export interface PinnedKeys {
  readonly pinned: (kid: string) => boolean
  /** The public key of a pinned thumbprint. Rejects with Refusal if the served set does not contain it. */
  readonly key: (kid: string) => Promise<PublicKey>
}

const freshMillis = 600_000

const thumbprintOf = ({ e, n }: RsaKey): string =>
  createHash("sha256").update(JSON.stringify({ e, kty: "RSA", n })).digest("base64url")

/** Gives sets of pinned keys that share one cache of the served keys. `now`: milliseconds. */
export const keyCache = (
  served: () => Promise<{ readonly keys: ReadonlyArray<Jwk> }>,
  now: () => number = Date.now,
) => {
  let known: ReadonlyMap<string, PublicKey> = new Map()
  let fetchedAt = -Infinity
  let fetching: Promise<void> | null = null

  const fetchKeys = async (): Promise<void> => {
    const found = new Map<string, PublicKey>()
    for (const { e, kty, n } of (await served()).keys) {
      if (kty !== "RSA" || typeof e !== "string" || typeof n !== "string") continue
      const thumbprint = thumbprintOf({ e, n })
      const key = known.get(thumbprint) ?? rs256({ e, n })
      if (key !== null) found.set(thumbprint, key)
    }
    known = found
    fetchedAt = now()
  }

  return (kids: ReadonlyArray<string>): PinnedKeys => {
    const pinned = new Set(kids)
    return {
      pinned: (kid) => pinned.has(kid),
      key: async (kid) => {
        if (!known.has(kid) || now() - fetchedAt > freshMillis) {
          // Concurrent calls share one request.
          await (fetching ??= fetchKeys().finally(() => {
            fetching = null
          }))
        }
        return known.get(kid) ??
          Promise.reject(new Refusal("key", "the key set does not contain this key"))
      },
    }
  }
}
