/**
 * Tokens that were verified within the last minute: a portal's server sends the same one with request after request, and
 * checking its signature costs as much as the read that it asks for. Only what the signature says is kept, under the
 * token's SHA-256: whether the person and the session stand is asked of the database each time.
 */
import { createHash } from "node:crypto"

const keptMillis = 60_000
const most = 10_000

interface Entry<A> {
  readonly value: A
  readonly until: number
}

export const remembered = <A>() => {
  const entries = new Map<string, Entry<A>>()
  const keyOf = (token: string) => createHash("sha256").update(token).digest("base64")

  /** `endsMillis`: when the token ends by itself. */
  const keep = (key: string, value: A, millis: number, endsMillis: number): void => {
    if (entries.size >= most) {
      for (const oldest of entries.keys()) {
        entries.delete(oldest)
        if (entries.size < most) break
      }
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
  return { keyOf, keep, find }
}
