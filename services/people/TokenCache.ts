/**
 * A cache of tokens that were verified within the last minute: a portal's server sends the same token with request
 * after request, and verifying its signature costs as much as the read that the request asks for. Only the signed
 * claims are kept, under the token's SHA-256: the status of the person and the session is read from the database each
 * time.
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
    // Drops expired tokens that were not sent again: the entries at the front expired first.
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
