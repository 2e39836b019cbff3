/**
 * Sends every outgoing HTTP request of the program.
 *
 * Guarantees:
 * - `post` is for URLs that users supply. Scheme, port and literal address are checked before the request, every
 *   resolved address when connecting, the peer's address after connecting. `post` never follows redirects, never
 *   decompresses bodies and never uses the environment's proxies.
 * - One deadline, by Effect's Clock, covers DNS, the wait for a connection, connecting, TLS, sending, headers and body.
 * - `post` never rejects and never retries: a request goes out at most once per call. It returns a plain promise,
 *   because a fiber per delivery cost a quarter of the throughput. It has its own HTTP/1.1 client, because undici took
 *   half of a delivery's time and accepts malformed responses (docs/delivery.md).
 * - `ask` is for URLs of the operator's configuration and uses undici: no address policy, the same deadline, and a
 *   limit on the response's size.
 */
import { Clock, Context, Effect, Layer, Result, Schema } from "effect"
import { BoundedMap } from "./BoundedMap.ts"
import { counted } from "./MapSizes.ts"
import * as AddressPolicy from "./Outbound/AddressPolicy.ts"
import * as ConnectionPool from "./Outbound/ConnectionPool.ts"
import * as Deadlines from "./Outbound/Deadlines.ts"
import { type ExchangeOutcome, HttpExchange, type Limits, type Outcome } from "./Outbound/HttpExchange.ts"
import * as PinnedConnector from "./Outbound/PinnedConnector.ts"
import * as TrustedConnections from "./Outbound/TrustedConnections.ts"
import * as CheckedUrls from "./Outbound/CheckedUrls.ts"
import * as DnsResolver from "./Outbound/DnsResolver.ts"
import { checkUrl, type UrlRefusal } from "./Outbound/UrlCheck.ts"

export type { Outcome } from "./Outbound/HttpExchange.ts"
export type { Reason } from "./Outbound/Failure.ts"
export type { UrlRefusal } from "./Outbound/UrlCheck.ts"

export interface OutboundConfig {
  /** Address ranges that users' URLs may also reach, and by plain http (`WEBHOOKS_ALLOWED_CIDRS`). */
  readonly allowedCidrs: ReadonlyArray<string>
  /** Certificate authorities (PEM) trusted in addition to the runtime's (`WEBHOOKS_CA_FILE`). */
  readonly certificateAuthorities: ReadonlyArray<string>
  readonly timeoutMillis: number
  /** Ports that this installation listens on; users' URLs may not name them. */
  readonly ownPorts: ReadonlyArray<number>
  /** Name servers (`address` or `address:port`) to use instead of the system's. */
  readonly nameservers?: ReadonlyArray<string>
}

export interface Post {
  readonly url: string
  readonly headers: Record<string, string> | Array<string>
  readonly body: Uint8Array | string
  /** Bytes of the body to keep of a 2xx response. At most 64 KiB of any body are read. */
  readonly keepOnSuccess: number
  /** Bytes of the body to keep of any other response. */
  readonly keepOnFailure: number
  /** Whether to keep the header fields of a 2xx response, too; default: only of another. */
  readonly headersOnSuccess?: boolean
  /** Aborts the request as the deadline does. */
  readonly signal?: AbortSignal
}

/** A request to an operator's URL failed; `reason` as in `Outcome.error`, or `too_large`. */
export class OutboundError extends Schema.TaggedError<OutboundError>()("OutboundError", {
  reason: Schema.Literals([
    "timeout",
    "dns",
    "connect",
    "tls",
    "blocked_address",
    "reset",
    "body",
    "protocol",
    "too_large",
  ]),
  host: Schema.String,
}) {}

const maxPostResponseBytes = 64 * 1024
const maxAskResponseBytes = 1024 * 1024

const maxResolvedNames = 1_024

export class Outbound extends Context.Service<Outbound, {
  /** POSTs to a user's URL. The promise never rejects: failures are in the outcome. */
  readonly post: (request: Post) => Promise<Outcome>
  /**
   * Sends a request to an operator's URL (default: GET). Returns the response whatever its status; fails with
   * `too_large` when its body is longer than `maxBytes` (default: 1 MiB).
   */
  readonly ask: (
    url: string,
    options: {
      readonly trusted: true
      readonly method?: "GET" | "POST" | "PUT" | "DELETE"
      readonly headers?: Record<string, string>
      readonly body?: string
      readonly maxBytes?: number
    },
  ) => Effect.Effect<{ readonly status: number; readonly body: Uint8Array }, OutboundError>
  /** Checks a user's URL before it is stored; names are not resolved. */
  readonly check: (url: string) => Result.Result<URL, UrlRefusal>
  /** `host:port` of a URL, the key of limits per destination; empty if the text is not a URL. */
  readonly hostKey: (url: string) => string
}>()("bailiwick/services/platform/Outbound") {
  static readonly layer = (config: OutboundConfig) => Layer.effect(Outbound, make(config))
}

const make = Effect.fnUntraced(function* (config: OutboundConfig) {
  const clock = yield* Clock.Clock
  const now = () => clock.currentTimeMillisUnsafe()
  const allowedRanges = yield* Effect.fromResult(AddressPolicy.parseCidrs(config.allowedCidrs)).pipe(
    Effect.mapError((cidr) => new Error(`not a CIDR range: ${cidr}`)),
    Effect.orDie,
  )
  const policy = AddressPolicy.make({ allowedRanges, ownPorts: config.ownPorts })
  const resolve = yield* DnsResolver.make(config.nameservers)
  const latest = new BoundedMap<string, ReadonlySet<string>>(maxResolvedNames)
  yield* counted("names of connections", () => latest.size)
  const connector = { authorities: config.certificateAuthorities, timeoutMillis: config.timeoutMillis }
  const checked = {
    resolve,
    policy,
    resolved: (name: string, addresses: ReadonlySet<string>) => latest.set(name, addresses),
  }
  const dispatch = yield* ConnectionPool.make({
    connect: yield* PinnedConnector.make({ ...connector, checked }),
    latest: (name) => latest.get(name),
  })
  const dispatchTrusted = yield* TrustedConnections.make(yield* PinnedConnector.make({ ...connector, checked: null }))
  // Made last, and so released first: exchanges in flight expire before their connections are destroyed.
  const deadlines = yield* Deadlines.make(config.timeoutMillis)
  const checkedTarget = yield* CheckedUrls.make(policy)

  const begin = (limits: Limits, done: (outcome: ExchangeOutcome) => void): HttpExchange => {
    const exchange = new HttpExchange(limits, now, (ended, outcome) => {
      deadlines.remove(ended)
      done(outcome)
    })
    deadlines.add(exchange)
    return exchange
  }

  const post = (request: Post): Promise<Outcome> =>
    new Promise((done) => {
      const { keepOnSuccess, keepOnFailure, headersOnSuccess = false, headers, body } = request
      const exchange = begin(
        { keepOnSuccess, keepOnFailure, headersOnSuccess, read: maxPostResponseBytes },
        done,
      )
      const { allowed, origin, path } = checkedTarget(request.url)
      if (!allowed) return exchange.fail("blocked_address")
      request.signal?.addEventListener("abort", () => exchange.expire())
      dispatch(origin, { path, headers, body }, exchange)
    })

  const ask: Outbound["Service"]["ask"] = Effect.fn("Outbound.ask")(function* (address, options) {
    const url = URL.parse(address)
    if (url === null || !/^https?:$/.test(url.protocol)) {
      return yield* new OutboundError({ reason: "protocol", host: "" })
    }
    const { origin, path, hostKey } = CheckedUrls.targetOf(url, true)
    const limit = options.maxBytes ?? maxAskResponseBytes
    const outcome = yield* Effect.callback<ExchangeOutcome>((resume) => {
      // Reads one byte more than the limit, to notice a body that is longer than the limit.
      const exchange = begin(
        { keepOnSuccess: limit, keepOnFailure: limit, read: limit + 1 },
        (ended) => resume(Effect.succeed(ended)),
      )
      const headers = { ...options.headers, "accept-encoding": "identity" }
      const { body = null, method = "GET" } = options
      dispatchTrusted(origin, { origin, path, method, headers, body }, exchange)
      return Effect.sync(() => exchange.expire())
    })
    if (outcome.truncated) return yield* new OutboundError({ reason: "too_large", host: hostKey })
    if (outcome.error !== null) return yield* new OutboundError({ reason: outcome.error, host: hostKey })
    return { status: outcome.status ?? 0, body: outcome.body ?? new Uint8Array() }
  })

  return Outbound.of({
    post,
    ask,
    check: (url) => checkUrl(url, policy),
    hostKey: (url) => checkedTarget(url).hostKey,
  })
})
