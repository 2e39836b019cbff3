/**
 * undici's pooled connections, for the operator's own URLs; those of users have ConnectionPool. At most 64 per origin,
 * idle ones closed after 4 s (30 s where the peer asks for longer).
 *
 * They live in generations: after 5 minutes, so that a moved name is followed, or 1,024 distinct origins, so that a user
 * with a hundred thousand host names holds no more than that, a new Agent takes over, and the old one closes as its last
 * exchange ends. Ages of connections would do for the first; undici compares them all, twice a request.
 */
import type { buildConnector, Dispatcher } from "undici"
import { Clock, Effect } from "effect"
import { counted } from "../MapSizes.ts"
import { Agent } from "./UndiciParts.ts"

const maxOrigins = 1_024
const maxAgeMillis = 300_000

/** A scoped dispatcher for HTTP/1.1 without pipelining, redirects, decompression, proxies or retries. */
export const make = Effect.fnUntraced(function* (connect: buildConnector.connector) {
  const clock = yield* Clock.Clock
  const agents = new Set<Dispatcher>()
  const origins = new Set<string>()
  yield* counted("origins, trusted", () => origins.size)
  const open = () => {
    const agent = new Agent({
      connect,
      connections: 64,
      pipelining: 1,
      allowH2: false,
      keepAliveTimeout: 4_000,
      keepAliveMaxTimeout: 30_000,
      // The exchange's own deadline covers both.
      headersTimeout: 0,
      bodyTimeout: 0,
    })
    agents.add(agent)
    return agent
  }
  let current = open()
  let openedAt = clock.currentTimeMillisUnsafe()
  yield* Effect.addFinalizer(() => Effect.promise(() => Promise.all([...agents].map((agent) => agent.destroy()))))

  const retire = (agent: Dispatcher) => {
    const forget = () => void agents.delete(agent)
    agent.close().then(forget, forget)
  }

  /** Dispatches over a pooled connection of `origin`. */
  return (origin: string, request: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void => {
    const now = clock.currentTimeMillisUnsafe()
    if (now - openedAt >= maxAgeMillis || (origins.size >= maxOrigins && !origins.has(origin))) {
      origins.clear()
      retire(current)
      current = open()
      openedAt = now
    }
    origins.add(origin)
    current.dispatch(request, handler)
  }
})
