/**
 * Tokens that were verified within the last minute: a portal's server sends the same one with request after request, and
 * checking its signature costs as much as the read that it asks for. Only what the signature says is kept, under the
 * token's SHA-256: whether the person and the session stand is asked of the database each time.
 */
import { createHash } from "node:crypto"
import { BoundedMap } from "../platform/BoundedMap.ts"

const keptMillis = 60_000
const most = 10_000

interface Entry<A> {
  readonly value: A
  readonly until: number
}

export const remembered = <A>() => {
  const entries = new BoundedMap<string, Entry<A>>(most)
  const keyOf = (token: string) => createHash("sha256").update(token).digest("base64")

  /** `endsMillis`: when the token ends by itself. */
  const keep = (key: string, value: A, millis: number, endsMillis: number): void => {
    // Tokens that were not sent again are still there: those at the front ended first.
    for (const [oldest, { until }] of entries) {
      if (until > millis) break
      entries.delete(oldest)
    }
    entries.set(key, { value, until: Math.min(millis + keptMillis, endsMillis) })
  }

  const find = (key: string, millis: number): A | undefined => {
    const entry = entries.get(key)
    if (entry === undefined) return undefined
    if (millis < entry.until) return entry.value
    entries.delete(key)
    return undefined
  }
  return { keyOf, keep, find, size: () => entries.size }
}
