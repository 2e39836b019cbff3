/** Streams of the Shared Signals Framework, made as a receiver makes them. */
import { Effect } from "effect"
import { asked, type Services } from "./LifecycleServices.ts"

const streamsOf = (url: string) => new URL("/v1/lifecycle/streams", url)

/** One push stream (RFC 8935) for each of the first projects. */
export const pushStreams = (url: string, services: Services, projects: number, endpoint: string) =>
  Effect.forEach(
    Array.from({ length: projects }, (_, n) => n),
    Effect.fnUntraced(function* (n) {
      const delivery = { method: "urn:ietf:rfc:8935", endpoint_url: endpoint }
      yield* asked(streamsOf(url), { token: yield* services.token(n), body: { delivery }, status: 201 })
    }),
    { concurrency: 4, discard: true },
  )

/** Makes a poll stream (RFC 8936) of project `n`; returns the path to poll. */
export const pollStream = Effect.fnUntraced(function* (url: string, services: Services, n: number) {
  const text = yield* asked(streamsOf(url), { token: yield* services.token(n), body: {}, status: 201 })
  return new URL(JSON.parse(text).delivery.endpoint_url).pathname
})
