/**
 * Answers with a problem of ours where node:http cannot parse a request. Its route and actor are unknown, so it leaves
 * no record in the audit.
 */
import { Effect } from "effect"
import { HttpServerResponse } from "effect/http"
import { type Server, STATUS_CODES } from "node:http"
import type { Duplex } from "node:stream"
import { HeadersTooLarge, MalformedRequest } from "../../../schemas/problems/HttpProblems.ts"
import { Ids } from "../../../services/platform/Ids.ts"
import { completed, headed, problemIn } from "../edge/ProblemResponse.ts"
import { respond } from "../edge/ErrorMapping.ts"
import { instanceOf } from "../edge/Routes.ts"

const detail =
  "The request cannot be read as HTTP/1.1: check that its method is in capitals and its headers are well-formed"

const answerTo = Effect.fnUntraced(function* (code: unknown) {
  const requestId = yield* (yield* Ids).next
  const refusal = code === "HPE_HEADER_OVERFLOW" ? new HeadersTooLarge({}) : new MalformedRequest({ detail })
  const response = yield* respond(refusal)
  const occurrence = { instance: instanceOf(undefined), requestId, auditId: null }
  return headed(completed(response, problemIn(response) ?? {}, occurrence), requestId, true)
})

const textOf = ({ body, headers, status }: HttpServerResponse.HttpServerResponse): string => {
  const bytes = body._tag === "Uint8Array" ? body.body : new Uint8Array()
  const lines = Object.entries({
    ...headers,
    "content-type": "application/problem+json",
    "content-length": String(bytes.length),
  })
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${
    lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")
  }\r\n${new TextDecoder().decode(bytes)}`
}

export const answerUnparsed = (http: Server) =>
  Effect.map(Effect.context<never>(), (context) => {
    http.on("clientError", (error: Error & { readonly code?: unknown }, socket: Duplex) => {
      // The client has reset the connection, or another answer is being sent.
      if (error.code === "ECONNRESET" || !socket.writable || Reflect.get(socket, "_httpMessage") != null) {
        return void socket.destroy()
      }
      socket.end(textOf(Effect.runSyncWith(context)(answerTo(error.code))), () => socket.destroy())
    })
  })
