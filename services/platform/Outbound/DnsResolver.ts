/**
 * Resolves names by DNS alone (c-ares). getaddrinfo would let a slow zone fill the thread pool that the whole process
 * shares. A lookup takes at most about 2 s and asks for both address families at once; `localhost` is never asked for
 * (RFC 6761).
 *
 * An answer is cached for 5 s, and concurrent lookups share it. The caller checks the addresses at each use.
 */
import { Resolver } from "node:dns/promises"
import { isIPv6 } from "node:net"
import { Clock, Effect } from "effect"
import { BoundedMap } from "../BoundedMap.ts"
import { counted } from "../MapSizes.ts"
import { isLocalhost, loopback } from "./AddressPolicy.ts"
import { Failure } from "./Failure.ts"

const cacheMillis = 5_000
const maxNames = 1_024
const maxAddresses = 64

export interface Resolved {
  readonly address: string
  readonly family: 4 | 6
}

interface Answer {
  readonly cachedUntil: number
  readonly addresses: Promise<ReadonlyArray<Resolved>>
}

/** `nameservers`: `address` or `address:port`, default the system's. A lookup rejects with `Failure("dns")`. */
export const make = Effect.fnUntraced(function* (nameservers: ReadonlyArray<string> | undefined) {
  const clock = yield* Clock.Clock
  const answers = new BoundedMap<string, Answer>(maxNames)
  yield* counted("resolved names", () => answers.size)
  const resolver = yield* Effect.acquireRelease(
    Effect.sync(() => {
      // c-ares doubles the timeout for the second try: 0.65 s + 1.3 s.
      const made = new Resolver({ timeout: 650, tries: 2 })
      if (nameservers !== undefined) made.setServers(nameservers)
      return made
    }),
    (made) => Effect.sync(() => made.cancel()),
  )

  const ask = async (name: string): Promise<ReadonlyArray<Resolved>> => {
    const [v4, v6] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
    const addresses: Array<Resolved> = []
    if (v4.status === "fulfilled") { for (const address of v4.value) addresses.push({ address, family: 4 }) }
    if (v6.status === "fulfilled") { for (const address of v6.value) addresses.push({ address, family: 6 }) }
    if (addresses.length === 0) throw new Failure("dns", v4.status === "rejected" ? v4.reason : undefined)
    return addresses
  }

  /** All addresses of `hostname`, IPv4 first; rejects when there are none, or more than 64. */
  return async (hostname: string): Promise<ReadonlyArray<Resolved>> => {
    if (isLocalhost(hostname)) return loopback.map((address) => ({ address, family: isIPv6(address) ? 6 : 4 }))
    const now = clock.currentTimeMillisUnsafe()
    const cached = answers.get(hostname)
    if (cached !== undefined && cached.cachedUntil > now) return cached.addresses
    const answer: Answer = { cachedUntil: now + cacheMillis, addresses: ask(hostname) }
    answers.set(hostname, answer)
    try {
      const addresses = await answer.addresses
      if (addresses.length > maxAddresses) throw new Failure("dns")
      return addresses
    } catch (error) {
      if (answers.get(hostname) === answer) answers.delete(hostname)
      throw error
    }
  }
})
