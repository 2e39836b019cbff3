/**
 * undici's pooled connections for the operator's own URLs; users' URLs go through ConnectionPool. At most 64 per
 * origin; idle ones close after 4 s (at most 30 s if the peer asks for it).
 *
 * A new Agent replaces the old one after 5 minutes, so that a changed DNS answer is used, or after 1,024 distinct
 * origins, so that many host names do not use more memory. The old one closes when its last exchange ends. undici's own
 * maximum age per connection would do for the first, but undici then compares all ages twice per request.
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

  /** Dispatches over a pooled connection to `origin`. */
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
