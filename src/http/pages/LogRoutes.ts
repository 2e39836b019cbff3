/**
 * `/log/checkpoint`, `/log/cosigned-checkpoint` and `/log/tile/…`: the transparency log as the static files of C2SP
 * tlog-tiles. Public, without a credential, and no part of the API's document: verifiers of any log read them.
 */
import { Effect, Layer } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import type { SqlError } from "effect/sql"
import { DependencyUnavailable, NotFound } from "../../../schemas/problems/HttpProblems.ts"
import { LogFiles, type LogHeld } from "../../../services/transparency/LogFiles.ts"
import { respond } from "../edge/ErrorMapping.ts"

/** The log's prefix. */
export const logPath = "/log"

/** Verifiers come back: an operator has to put right what holds the log. */
const retrySeconds = 60

const held = Effect.fnUntraced(function* (_: LogHeld) {
  const response = yield* respond(new DependencyUnavailable({ detail: "The log is held and serves nothing meanwhile" }))
  return HttpServerResponse.setHeaders(response, { "retry-after": String(retrySeconds), "cache-control": "no-store" })
})

const noteOr = (found: string | null, detail: string) =>
  found === null ? respond(new NotFound({ detail })) : Effect.succeed(HttpServerResponse.text(found, {
    contentType: "text/plain; charset=utf-8",
    headers: { "cache-control": "no-cache" },
  }))

const checkpoint = Effect.gen(function* () {
  return yield* noteOr(yield* (yield* LogFiles).checkpoint, "The log has not begun")
})

const cosigned = Effect.gen(function* () {
  return yield* noteOr(yield* (yield* LogFiles).cosigned, "No witness has cosigned a checkpoint")
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
  const answering = <R>(
    answer: Effect.Effect<HttpServerResponse.HttpServerResponse, LogHeld | SqlError.SqlError, R>,
  ) => Effect.catchTag(Effect.provideService(answer, LogFiles, files), "LogHeld", held)
  return Layer.mergeAll(
    HttpRouter.add("GET", `${logPath}/checkpoint`, answering(checkpoint)),
    HttpRouter.add("GET", `${logPath}/cosigned-checkpoint`, answering(cosigned)),
    HttpRouter.add("GET", `${logPath}/tile/*`, answering(tile)),
  )
})).pipe(Layer.provide(LogFiles.layer))
