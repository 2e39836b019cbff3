/**
 * Pooled connections, bounded: at most 64 per origin, idle ones closed after 4 s (30 s where the peer asks for longer),
 * each replaced after 5 minutes so that a moved name is followed.
 *
 * Origins are bounded by generations: after 1,024 distinct ones a new Agent takes over and the old one closes as its
 * last exchange ends, so that a user with a hundred thousand host names holds no more than that.
 */
import { Agent, type buildConnector, type Dispatcher } from "undici"
import { Effect } from "effect"

const maxOrigins = 1_024

/** A scoped dispatcher for HTTP/1.1 without pipelining, redirects, decompression, proxies or retries. */
export const make = Effect.fnUntraced(function* (connect: buildConnector.connector) {
  const agents = new Set<Agent>()
  const origins = new Set<string>()
  const open = () => {
    const agent = new Agent({
      connect,
      connections: 64,
      pipelining: 1,
      allowH2: false,
      keepAliveTimeout: 4_000,
      keepAliveMaxTimeout: 30_000,
      clientTtl: 300_000,
      // The exchange's own deadline covers both.
      headersTimeout: 0,
      bodyTimeout: 0,
    })
    agents.add(agent)
    return agent
  }
  let current = open()
  yield* Effect.addFinalizer(() => Effect.promise(() => Promise.all([...agents].map((agent) => agent.destroy()))))

  const retire = (agent: Agent) => {
    const forget = () => void agents.delete(agent)
    agent.close().then(forget, forget)
  }

  /** Dispatches over a pooled connection of `origin`. */
  return (origin: string, request: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void => {
    if (!origins.has(origin)) {
      if (origins.size >= maxOrigins) {
        origins.clear()
        retire(current)
        current = open()
      }
      origins.add(origin)
    }
    current.dispatch(request, handler)
  }
})
