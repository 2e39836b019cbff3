import { Context, Effect, Layer } from "effect"
import { Outbound, type OutboundConfig, type Post } from "../../../../services/platform/Outbound.ts"

/** The service with loopback allowed; `send` (a promise) and `sent` (an Effect) are `post` with defaults. */
export const outboundOf = (config: Partial<OutboundConfig> = {}) =>
  Effect.map(
    Layer.build(Outbound.layer({
      allowedCidrs: ["127.0.0.0/8"],
      certificateAuthorities: [],
      timeoutMillis: 10_000,
      ownPorts: [],
      ...config,
    })),
    (context) => {
      const outbound = Context.get(context, Outbound)
      const send = (url: string, options: Partial<Post> = {}) =>
        outbound.post({ url, headers: {}, body: "{}", keepOnSuccess: 4_096, keepOnFailure: 65_536, ...options })
      return {
        ...outbound,
        send,
        sent: (url: string, options?: Partial<Post>) => Effect.promise(() => send(url, options)),
      }
    },
  )

export const at = (server: { readonly port: number }, path = "/") => `http://127.0.0.1:${server.port}${path}`

/** Turns a Node callback into an Effect that a test can wait for. */
export const signal = () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  return { fire: resolve, wait: Effect.promise(() => promise) }
}
