/**
 * Everything that leaves over HTTP.
 *
 * What may be relied on:
 * - `post` is for URLs that users supply. Scheme, port and literal are judged before, every resolved address at the
 *   connection, the peer's address after it. Redirects are never followed, bodies never decompressed, the
 *   environment's proxies never used.
 * - One deadline over DNS, waiting for a connection, connect, TLS, sending, headers and body, by Effect's Clock.
 * - `post` never rejects and never retries: a request goes out at most once per call. It is a plain promise and no
 *   fiber, because a fiber per delivery cost a quarter of the throughput; and it speaks HTTP/1.1 by itself, since undici
 *   took half of a delivery's time and more liberties with answers (docs/delivery.md).
 * - `ask` is for URLs of the operator's configuration, by undici: no address policy, but the same deadline, and a size
 *   limit.
 */
import { Clock, Context, Effect, Layer, Result, Schema } from "effect"
import { BoundedMap } from "./BoundedMap.ts"
import { counted } from "./MapSizes.ts"
import * as AddressPolicy from "./Outbound/AddressPolicy.ts"
import * as ConnectionPool from "./Outbound/ConnectionPool.ts"
import * as Connections from "./Outbound/TrustedConnections.ts"
import * as Connector from "./Outbound/PinnedConnector.ts"
import * as Deadlines from "./Outbound/Deadlines.ts"
import { HttpExchange, type Limits, type Outcome, type Settled } from "./Outbound/HttpExchange.ts"
import * as Names from "./Outbound/DnsResolver.ts"
import * as Targets from "./Outbound/CheckedUrls.ts"
import { checkUrl, type UrlRefusal } from "./Outbound/UrlCheck.ts"

export type { Outcome } from "./Outbound/HttpExchange.ts"
export type { Reason } from "./Outbound/Failure.ts"
export type { UrlRefusal } from "./Outbound/UrlCheck.ts"

export interface OutboundConfig {
  /** Ranges opened to users' URLs, and to plain http (`WEBHOOKS_ALLOWED_CIDRS`). */
  readonly allowedCidrs: ReadonlyArray<string>
  /** PEM authorities trusted beside the runtime's (`WEBHOOKS_CA_FILE`). */
  readonly certificateAuthorities: ReadonlyArray<string>
  readonly timeoutMillis: number
  /** Ports that this installation listens on: never a destination of users' URLs. */
  readonly ownPorts: ReadonlyArray<number>
  /** Name servers (`address` or `address:port`) instead of the system's. */
  readonly nameservers?: ReadonlyArray<string>
}

export interface Post {
  readonly url: string
  readonly headers: Record<string, string> | Array<string>
  readonly body: Uint8Array | string
  /** Bytes of the body to keep of a 2xx, and of any other response; at most 64 KiB are read at all. */
  readonly keepOnSuccess: number
  readonly keepOnFailure: number
  /** Cuts it off, as the deadline does. */
  readonly signal?: AbortSignal
}

/** A request to an operator's URL came to nothing; `reason` as in `Outcome.error`, or `too_large`. */
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

const readOfPost = 64 * 1024
const readOfAnswer = 1024 * 1024

const maxLatestNames = 1_024

export class Outbound extends Context.Service<Outbound, {
  /** POSTs to a user's URL; the outcome says everything, nothing is thrown. */
  readonly post: (request: Post) => Promise<Outcome>
  /**
   * Asks an operator's URL, by GET where no method is named: the response whatever its status, its body at most
   * `maxBytes` (1 MiB) long.
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
  /** The check of a user's URL when it is stored; names are not resolved. */
  readonly check: (url: string) => Result.Result<URL, UrlRefusal>
  /** `host:port` of a URL, the key of limits per destination; empty for what is no URL. */
  readonly hostKey: (url: string) => string
}>()("bailiwick/services/platform/Outbound") {
  static readonly layer = (config: OutboundConfig) => Layer.effect(Outbound, make(config))
}

const make = Effect.fnUntraced(function* (config: OutboundConfig) {
  const clock = yield* Clock.Clock
  const now = () => clock.currentTimeMillisUnsafe()
  const opened = yield* Effect.fromResult(AddressPolicy.parseCidrs(config.allowedCidrs)).pipe(
    Effect.mapError((cidr) => new Error(`not a CIDR range: ${cidr}`)),
    Effect.orDie,
  )
  const policy = AddressPolicy.make({ opened, ownPorts: config.ownPorts })
  const names = yield* Names.make(config.nameservers)
  const latest = new BoundedMap<string, ReadonlySet<string>>(maxLatestNames)
  yield* counted("names of connections", () => latest.size)
  const connector = { authorities: config.certificateAuthorities, timeoutMillis: config.timeoutMillis }
  const checked = {
    names,
    policy,
    resolved: (name: string, addresses: ReadonlySet<string>) => latest.set(name, addresses),
  }
  const dispatch = yield* ConnectionPool.make({
    connect: yield* Connector.make({ ...connector, checked }),
    latest: (name) => latest.get(name),
  })
  const dispatchTrusted = yield* Connections.make(yield* Connector.make({ ...connector, checked: null }))
  // Last, so that what is in flight expires before its connections are destroyed.
  const deadlines = yield* Deadlines.make(config.timeoutMillis)
  const target = yield* Targets.make(policy)

  const begin = (limits: Limits, done: (outcome: Settled) => void): HttpExchange => {
    const exchange = new HttpExchange(limits, now, (ended, outcome) => {
      deadlines.remove(ended)
      done(outcome)
    })
    deadlines.add(exchange)
    return exchange
  }

  const post = (request: Post): Promise<Outcome> =>
    new Promise((resolve) => {
      const { keepOnSuccess, keepOnFailure, headers, body } = request
      const exchange = begin({ keepOnSuccess, keepOnFailure, read: readOfPost }, resolve)
      const { allowed, origin, path } = target(request.url)
      if (!allowed) return exchange.fail("blocked_address")
      request.signal?.addEventListener("abort", () => exchange.expire())
      dispatch(origin, { path, headers, body }, exchange)
    })

  const ask: Outbound["Service"]["ask"] = Effect.fn("Outbound.ask")(function* (address, options) {
    const url = URL.parse(address)
    if (url === null || !/^https?:$/.test(url.protocol)) {
      return yield* new OutboundError({ reason: "protocol", host: "" })
    }
    const { origin, path, hostKey } = Targets.targetOf(url, true)
    const limit = options.maxBytes ?? readOfAnswer
    const outcome = yield* Effect.callback<Settled>((resume) => {
      // One byte more than may be kept tells a body that fits from one that does not.
      const exchange = begin(
        { keepOnSuccess: limit, keepOnFailure: limit, read: limit + 1 },
        (settled) => resume(Effect.succeed(settled)),
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
    hostKey: (url) => target(url).hostKey,
  })
})
