/**
 * Limits refused credentials per address: after `limit` of them within a minute, further credentials from the address
 * are answered 429 until that minute is over, without being checked. A credential that this process accepted before
 * still passes, so that other clients behind the same address keep working. Each process counts for itself, in memory.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { HttpServerRequest } from "effect/http"
import ipaddr from "ipaddr.js"
import { isIP } from "node:net"
import { RateLimited } from "../../../schemas/problems/HttpProblems.ts"
import { BoundedMap } from "../../../services/platform/BoundedMap.ts"
import { counted } from "../../../services/platform/MapSizes.ts"
import { Clients } from "./Clients.ts"

type Request = HttpServerRequest.HttpServerRequest

const windowMillis = 60_000

/** The most networks that are counted, and credentials that are known: the oldest are forgotten first. */
const most = 10_000

/** The network of one client: an IPv4 address, or the /64 of an IPv6 address. */
export const networkOf = (address: string): string | null => {
  if (isIP(address) === 0) return null
  const parsed = ipaddr.process(address.split("%", 1)[0]!)
  if (parsed instanceof ipaddr.IPv4) return parsed.toString()
  return `${new ipaddr.IPv6([...parsed.toByteArray().slice(0, 8), 0, 0, 0, 0, 0, 0, 0, 0]).toString()}/64`
}

interface Window {
  count: number
  readonly until: number
}

/** Counts by network, in windows that begin with their first refusal. */
export class Windows {
  /** In the order in which they end. */
  readonly #windows = new BoundedMap<string, Window>(most)
  readonly #limit: number
  #latest = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  get size(): number {
    return this.#windows.size
  }

  /** Whether any network may be beyond the limit. */
  busy(now: number): boolean {
    return now < this.#latest
  }

  /** Counts a refusal; returns whether the network reached the limit with it. */
  add(network: string, now: number): boolean {
    for (const [known, { until }] of this.#windows) {
      if (until > now) break
      this.#windows.delete(known)
    }
    const window = this.#windows.get(network) ?? { count: 0, until: now + windowMillis }
    if (window.count === 0) this.#windows.set(network, window)
    if (++window.count === this.#limit) this.#latest = Math.max(this.#latest, window.until)
    return window.count === this.#limit
  }

  /** Whole seconds for which the network is beyond the limit, 0 where it is not. */
  left(network: string, now: number): number {
    const window = this.#windows.get(network)
    if (window === undefined || window.count < this.#limit) return 0
    return Math.max(0, Math.ceil((window.until - now) / 1_000))
  }
}

/**
 * Identifies a credential by its last 12 characters, which are too few to be used and too many to be guessed. V8 copies
 * such a short piece; a longer one would keep the whole secret in memory.
 */
const tailOf = ({ headers: { authorization, cookie } }: Request): string | undefined =>
  (authorization ?? /(?:^|; *)(?:(?:__Host-)?bailiwick_console|mail_session)=([^;]+)/.exec(cookie ?? "")?.[1])?.slice(
    -12,
  )

export interface Guard {
  /** The refusal where the request brings a credential from an address that is beyond the limit. */
  readonly refusal: (request: Request) => Effect.Effect<RateLimited | undefined>
  /** The request's credential was refused. */
  readonly refused: (request: Request) => Effect.Effect<void>
  /** The request's credential was accepted. */
  readonly accepted: (request: Request) => void
}

const none: Guard = { refusal: () => Effect.succeed(undefined), refused: () => Effect.void, accepted: () => {} }

const guard = Effect.fnUntraced(function* (limit: number) {
  const { addressOf } = yield* Clients
  const windows = new Windows(limit)
  const known = new BoundedMap<string, true>(most)
  yield* counted("addresses of refused credentials", () => windows.size)
  yield* counted("accepted credentials", () => known.size)
  let quietUntil = 0

  /** Logs once a minute at most, whatever the number of addresses. */
  const tell = (network: string, now: number) => {
    if (now < quietUntil) return Effect.void
    quietUntil = now + windowMillis
    return Effect.logWarning(
      `${limit} credentials from ${network} were refused within a minute: further ones are answered 429 until it is over; ` +
        "name the address in TRUSTED_PROXIES if it is a proxy's",
    )
  }

  return {
    refusal: Effect.fnUntraced(function* (request: Request) {
      const now = yield* Clock.currentTimeMillis
      if (!windows.busy(now)) return undefined
      const tail = tailOf(request)
      if (tail === undefined || known.has(tail)) return undefined
      const network = networkOf(addressOf(request) ?? "")
      const seconds = network === null ? 0 : windows.left(network, now)
      if (seconds === 0) return undefined
      return new RateLimited({
        detail: `This address sent ${limit} credentials that were refused within a minute: try again in ${seconds} s`,
        retry_after: seconds,
        limit,
        window_seconds: windowMillis / 1_000,
      })
    }),
    refused: Effect.fnUntraced(function* (request: Request) {
      const tail = tailOf(request)
      const network = networkOf(addressOf(request) ?? "")
      if (tail === undefined || network === null) return
      known.delete(tail)
      const now = yield* Clock.currentTimeMillis
      if (windows.add(network, now)) yield* tell(network, now)
    }),
    accepted: (request: Request) => {
      const tail = tailOf(request)
      if (tail !== undefined && !known.has(tail)) known.set(tail, true)
    },
  }
})

/** Without its layer there is no limit. */
export class RefusedCredentials
  extends Context.Reference<Guard>("bailiwick/http/edge/RefusedCredentials", { defaultValue: () => none }) {
  /** `limit`: refused credentials a minute and address; 0: no limit. */
  static readonly layer = (limit: number) => limit === 0 ? Layer.empty : Layer.effect(RefusedCredentials, guard(limit))
}
