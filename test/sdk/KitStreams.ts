/** Streams of the real program, created as a receiver does: over HTTP, by a service with the capability. */
import { Effect } from "effect"
import { request } from "node:http"
import { done, send } from "../src/http/identity/IdentityClient.ts"
import { serve } from "../services/platform/Outbound/LoopbackServers.ts"
import { capabilities, grant, type Scene } from "../services/lifecycle/LifecycleFixture.ts"
import { serviceTokenFor } from "../support/TestTokens.ts"

export const secret = "Bearer of the stream"

/** Creates a stream for the scene's service; `asked`: further members of the request. */
export const streamOf = Effect.fnUntraced(function* (made: Scene, asked: object = {}) {
  const { clientId } = made.asking
  yield* grant(made, clientId, [...capabilities, "stream.manage"])
  const authorization = `Bearer ${yield* serviceTokenFor(clientId, { audience: "service-lifecycle" })}`
  const ask = (method: string, path: string, body?: object) => send(method, path, { authorization }, body)
  const { stream_id: streamId }: { readonly stream_id: string } = done(
    yield* ask("POST", "/v1/lifecycle/streams", asked),
  )
  const status = (status: string) => ask("POST", "/v1/lifecycle/status", { stream_id: streamId, status })
  return { ask, status, streamId }
})

export const pushTo = (endpoint_url: string) => ({
  delivery: { method: "urn:ietf:rfc:8935", endpoint_url, authorization_header: secret },
})

/** A proxy with a fixed address in front of a program that restarts; answers 503 while there is none. */
export const front = Effect.gen(function* () {
  let to: number | null = null
  const { port } = yield* serve((from, response) => {
    const away = () => {
      if (!response.headersSent) response.writeHead(503)
      response.end()
    }
    if (to === null) return away()
    const on = request({ port: to, method: "POST", headers: from.headers }, (answer) => {
      response.writeHead(answer.statusCode!, answer.headers)
      answer.on("error", away).pipe(response)
    }).on("error", away)
    from.pipe(on)
  })
  return {
    url: `http://127.0.0.1:${port}/events`,
    arrives: (port: number) => {
      to = port
    },
  }
})
