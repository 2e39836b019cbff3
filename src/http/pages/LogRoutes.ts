/**
 * `/log/checkpoint` and `/log/tile/…`: the transparency log as the static files of C2SP tlog-tiles. Public, without a
 * credential, and no part of the API's document: verifiers of any log read them.
 */
import { Effect, Layer } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { NotFound } from "../../../schemas/problems/HttpProblems.ts"
import { LogFiles } from "../../../services/transparency/LogFiles.ts"
import { respond } from "../edge/ErrorMapping.ts"

/** The log's prefix. */
export const logPath = "/log"

const checkpoint = Effect.gen(function* () {
  const found = yield* (yield* LogFiles).checkpoint
  if (found === null) return yield* respond(new NotFound({ detail: "The log has not begun" }))
  return HttpServerResponse.text(found, {
    contentType: "text/plain; charset=utf-8",
    headers: { "cache-control": "no-cache" },
  })
})

const tile = Effect.gen(function* () {
  const { url } = yield* HttpServerRequest.HttpServerRequest
  const found = yield* (yield* LogFiles).tile(url.split("?", 1)[0]!.slice(logPath.length + 1))
  if (found === null) return yield* respond(new NotFound({ detail: "The newest checkpoint's tree has no such tile" }))
  return HttpServerResponse.uint8Array(found, {
    contentType: "application/octet-stream",
    headers: { "cache-control": "public, max-age=31536000, immutable" },
  })
})

export const layer = Layer.unwrap(Effect.map(LogFiles, (files) => {
  const answering = <E, R>(answer: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>) =>
    Effect.provideService(answer, LogFiles, files)
  return Layer.merge(
    HttpRouter.add("GET", `${logPath}/checkpoint`, answering(checkpoint)),
    HttpRouter.add("GET", `${logPath}/tile/*`, answering(tile)),
  )
})).pipe(Layer.provide(LogFiles.layer))
