/**
 * One connection to the broker, made in the background and renewed for ever, so that no start waits for it. The client
 * reconnects by itself; a new connection is made here only where the client gave up for good.
 */
import type { ConnectionOptions, NatsConnection, NodeConnectionOptions } from "@nats-io/transport-node"
import { connect, credsAuthenticator } from "@nats-io/transport-node"
import { Effect, Latch, Redacted } from "effect"
import { readFileSync } from "node:fs"

export interface BusConfig {
  /** `nats://[user:password@|token@]host:port`, several separated by commas; `tls://` for TLS. */
  readonly url: Redacted.Redacted
  /** A NATS credentials file (NATS_CREDS). */
  readonly credsFile?: string
  /** How many servers keep each stream at least (NATS_REPLICAS); 1 by default. */
  readonly replicas?: number
}

const optionsOf = (config: BusConfig): ConnectionOptions & NodeConnectionOptions => {
  const urls = Redacted.value(config.url).split(",").map((text) => new URL(text.trim()))
  const [first] = urls
  const user = decodeURIComponent(first?.username ?? "")
  const pass = decodeURIComponent(first?.password ?? "")
  return {
    servers: urls.map((url) => `${url.hostname}:${url.port || "4222"}`),
    name: "bailiwick",
    ...(user !== "" && pass !== "" ? { user, pass } : user !== "" ? { token: user } : {}),
    ...(config.credsFile === undefined ? {} : { authenticator: credsAuthenticator(readFileSync(config.credsFile)) }),
    ...(first?.protocol === "tls:" ? { tls: {} } : {}),
    timeout: 2_000,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 250,
    reconnectJitter: 50,
    pingInterval: 5_000,
    maxPingOut: 2,
    ignoreAuthErrorAbort: true,
    noAsyncTraces: true,
  }
}

const delay = (millis: number) => new Promise<void>((resolve) => setTimeout(resolve, millis).unref())

export interface BusConnection {
  /** How many servers keep each stream at least. */
  readonly replicas: number
  /** The live connection, or null while there is none. */
  readonly live: () => NatsConnection | null
  /** Waits until there is a live connection. */
  readonly get: Effect.Effect<NatsConnection>
  /** How many times a connection was made: a caller that remembers another number may have missed messages. */
  readonly epoch: () => number
  /** Calls `listener` whenever the connection comes or goes; returns a function that stops that. */
  readonly onChange: (listener: () => void) => () => void
}

export const makeConnection = Effect.fnUntraced(function* (config: BusConfig) {
  const options = yield* Effect.try({ try: () => optionsOf(config), catch: (cause) => cause }).pipe(Effect.orDie)
  const up = Latch.makeUnsafe(false)
  const listeners = new Set<() => void>()
  let current: NatsConnection | null = null
  let epoch = 0
  let lastReason = ""

  const became = (nc: NatsConnection | null) => {
    current = nc
    if (nc === null) up.closeUnsafe()
    else {
      epoch++
      up.openUnsafe()
    }
    for (const listener of listeners) listener()
  }

  const watch = async (nc: NatsConnection) => {
    for await (const status of nc.status()) {
      if (status.type === "disconnect") became(null)
      else if (status.type === "reconnect") became(nc)
    }
  }

  const session = Effect.acquireUseRelease(
    Effect.tryPromise(() => connect(options)),
    (nc) => {
      became(nc)
      return Effect.promise(() => Promise.race([nc.closed(), watch(nc)]))
    },
    (nc) => {
      became(null)
      return Effect.promise(() => Promise.race([nc.flush(), delay(500)]).catch(() => {}).then(() => nc.close()))
    },
  )
  yield* session.pipe(
    Effect.tapError(({ cause }) => {
      const reason = cause instanceof Error ? cause.message : String(cause)
      const said = reason === lastReason
      lastReason = reason
      return said ? Effect.void : Effect.logWarning(`the broker cannot be reached: ${reason}`)
    }),
    Effect.ignore,
    Effect.andThen(Effect.sleep("500 millis")),
    Effect.forever,
    Effect.forkScoped,
  )

  const get: Effect.Effect<NatsConnection> = Effect.suspend(() =>
    current === null ? Effect.andThen(up.await, get) : Effect.succeed(current)
  )
  return {
    replicas: config.replicas ?? 1,
    live: () => current,
    get,
    epoch: () => epoch,
    onChange: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  } satisfies BusConnection
})
