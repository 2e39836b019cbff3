/**
 * `/console/*`: the console's shell, for every address that nothing else answers, and `/console/assets/*`, its files.
 * They are read on the first request, and held in memory from then on. In a checkout each request of the shell looks,
 * once a second at most, whether a source has changed, and builds anew.
 */
import { Clock, Context, Effect, Layer, Semaphore } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { createHash } from "node:crypto"
import { DependencyUnavailable, NotFound } from "../../../schemas/problems/HttpProblems.ts"
import { respond } from "../edge/ErrorMapping.ts"
import { type ConsoleFile, type ConsoleFiles, consoleFiles, sourceHash } from "./ConsoleBuild.ts"
import { assetHeaders, assetsPath, embedHeaders, embedPath, icon, shellHeaders } from "./ConsoleShell.ts"

const lookMillis = 1_000

interface Held {
  readonly hash: string | null
  readonly files: ConsoleFiles
}

const unavailable = (cause: unknown) =>
  Effect.logError("the console's files are not there", String(cause)).pipe(
    Effect.andThen(Effect.fail(new DependencyUnavailable({ detail: "The console was not built" }))),
  )

/** The files that are served now, and whether their sources have changed. */
class ConsoleAssets extends Context.Service<ConsoleAssets, {
  /** The newest files. */
  readonly newest: Effect.Effect<ConsoleFiles, DependencyUnavailable>
  /** The files as they are held: a page that is open asks for files of its own version. */
  readonly held: Effect.Effect<ConsoleFiles, DependencyUnavailable>
}>()("bailiwick/http/console/ConsoleAssets") {
  static readonly layer = Layer.effect(
    ConsoleAssets,
    Effect.gen(function* () {
      const one = yield* Semaphore.make(1)
      let held: Held | null = null
      let looked = 0
      const look = Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        if (held !== null && (held.hash === null || now - looked < lookMillis)) return held.files
        const hash = yield* Effect.tryPromise({ try: () => sourceHash(), catch: String })
        if (held === null || held.hash !== hash) {
          held = { hash, files: yield* Effect.tryPromise({ try: () => consoleFiles(hash), catch: String }) }
        }
        looked = now
        return held.files
      }).pipe(Effect.catch(unavailable))
      const newest = one.withPermits(1)(look)
      return ConsoleAssets.of({
        newest,
        held: Effect.suspend(() => held === null ? newest : Effect.succeed(held.files)),
      })
    }),
  )
}

const encoded = ({ br, gzip, raw }: ConsoleFile, accepted: string) =>
  /\bbr\b/.test(accepted)
    ? { body: br, encoding: { "content-encoding": "br" } }
    : /\bgzip\b/.test(accepted)
    ? { body: gzip, encoding: { "content-encoding": "gzip" } }
    : { body: raw, encoding: {} }

const sent = (file: ConsoleFile, headers: Readonly<Record<string, string>>) =>
  Effect.map(HttpServerRequest.HttpServerRequest, (request) => {
    const etag = `"${createHash("sha256").update(file.raw).digest("base64url").slice(0, 22)}"`
    if (request.headers["if-none-match"]?.includes(etag)) {
      return HttpServerResponse.empty({ status: 304, headers: { ...headers, etag } })
    }
    const { body, encoding } = encoded(file, request.headers["accept-encoding"] ?? "")
    return HttpServerResponse.uint8Array(body, { contentType: file.type, headers: { ...headers, ...encoding, etag } })
  })

const shell = (headers: Readonly<Record<string, string>>) =>
  Effect.gen(function* () {
    const files = yield* (yield* ConsoleAssets).newest
    return yield* sent(files.get("index.html")!, headers)
  }).pipe(Effect.catchTag("DependencyUnavailable", respond))

const asset = Effect.gen(function* () {
  const { url } = yield* HttpServerRequest.HttpServerRequest
  const name = url.split("?", 1)[0]!.slice(assetsPath.length + 1)
  const file = (yield* (yield* ConsoleAssets).held).get(name)
  if (file === undefined || name === "index.html") return yield* respond(new NotFound({}))
  return yield* sent(file, assetHeaders)
}).pipe(Effect.catchTag("DependencyUnavailable", respond))

const iconAnswer = Effect.sync(() =>
  HttpServerResponse.text(icon, { contentType: "image/svg+xml", headers: { "cache-control": "public, max-age=86400" } })
)

const routes = (embedOrigins: ReadonlyArray<string>) =>
  Layer.unwrap(Effect.gen(function* () {
    const assets = yield* ConsoleAssets
    return Layer.mergeAll(
      HttpRouter.add("GET", "/console/*", Effect.provideService(shell(shellHeaders), ConsoleAssets, assets)),
      HttpRouter.add(
        "GET",
        embedPath,
        embedOrigins.length === 0
          ? respond(new NotFound({ detail: "No page may frame this installation: EMBED_ORIGINS" }))
          : Effect.provideService(shell(embedHeaders(embedOrigins)), ConsoleAssets, assets),
      ),
      HttpRouter.add("GET", `${assetsPath}/*`, Effect.provideService(asset, ConsoleAssets, assets)),
      HttpRouter.add("GET", `${assetsPath}/icon.svg`, iconAnswer),
    )
  }))

/** `embedOrigins` are the origins whose pages may frame `/console/embed`. */
export const layer = (embedOrigins: ReadonlyArray<string>) => Layer.provide(routes(embedOrigins), ConsoleAssets.layer)
