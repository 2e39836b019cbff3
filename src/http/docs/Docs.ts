/**
 * `GET /v1/openapi.json`, its parts `GET /v1/openapi/{part}.json`, recorded examples at `GET /v1/openapi/examples/…`,
 * `GET /v1/asyncapi.json` and the reference page `GET /v1/docs`: public, made once, without content from other hosts. The
 * page works without scripts and its policy admits none.
 */
import { Effect, Layer } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import type { HttpApi, HttpApiGroup } from "effect/http-api"
import { createHash } from "node:crypto"
import { brotliCompressSync, constants, gzipSync } from "node:zlib"
import { type Part, partNames, partPath } from "./ApiParts.ts"
import { asyncApiDocument } from "./AsyncApiDocument.ts"
import { document } from "./Document.ts"
import { page } from "./DocsPage.ts"
import { style } from "./DocsStyle.ts"
import { partDocument } from "./PartDocuments.ts"
import { examplePath, examples } from "./RecordedExamples.ts"

const policy = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/** Level 5 takes 10 ms for the document; 11, half a second, would save a tenth of the bytes. */
const packings = {
  br: (bytes: Uint8Array): Uint8Array => brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }),
  gzip: (bytes: Uint8Array): Uint8Array => gzipSync(bytes),
}

type Packing = keyof typeof packings

const packingFor = (accepted = ""): Packing | null =>
  /\bbr\b/.test(accepted) ? "br" : /\bgzip\b/.test(accepted) ? "gzip" : null

const bytesOf = (text: string) => {
  const bytes = new TextEncoder().encode(text)
  return { bytes, digest: createHash("sha256").update(bytes).digest("base64url").slice(0, 22) }
}

/**
 * An answer with fixed bytes, made at its first request and compressed once for each encoding, or 304 for a client that
 * has them already.
 */
const fixed = (text: () => string, contentType: string) => {
  let made: ReturnType<typeof bytesOf> | undefined
  const packed = new Map<Packing, Uint8Array>()
  const pack = (packing: Packing, bytes: Uint8Array): Uint8Array => {
    const known = packed.get(packing) ?? packings[packing](bytes)
    packed.set(packing, known)
    return known
  }
  return Effect.map(HttpServerRequest.HttpServerRequest, (request) => {
    made ??= bytesOf(text())
    const { bytes, digest } = made
    const packing = packingFor(request.headers["accept-encoding"])
    const headers = {
      etag: packing === null ? `"${digest}"` : `"${digest}-${packing}"`,
      vary: "accept-encoding",
      "cache-control": "public, max-age=60",
      "content-security-policy": policy,
    }
    if (request.headers["if-none-match"]?.includes(digest)) return HttpServerResponse.empty({ status: 304, headers })
    return packing === null
      ? HttpServerResponse.uint8Array(bytes, { contentType, headers })
      : HttpServerResponse.uint8Array(pack(packing, bytes), {
        contentType,
        headers: { ...headers, "content-encoding": packing },
      })
  })
}

const answersOf = <Id extends string, Groups extends HttpApiGroup.Constraint>(
  api: HttpApi.HttpApi<Id, Groups>,
  base: string,
) => {
  const spec = document(api)
  const [json, written] = [JSON.stringify(spec), page(spec, base).text]
  return {
    json: fixed(() => json, "application/json"),
    bus: fixed(() => JSON.stringify(asyncApiDocument()), "application/json"),
    page: fixed(() => written, "text/html; charset=utf-8"),
    style: fixed(() => style, "text/css; charset=utf-8"),
    parts: Object.fromEntries(
      partNames.map((part) => [part, fixed(() => JSON.stringify(partDocument(spec, part)), "application/json")]),
    ) as Readonly<Record<Part, ReturnType<typeof fixed>>>,
  }
}

/** The addresses of the recorded examples, each with what it serves. */
const exampleAnswers = Object.entries(examples).flatMap(([operation, example]) =>
  ([[undefined, example], ["request", example.request.body], ["answer", example.answer.body]] as const).flatMap((
    [part, value],
  ) =>
    value === undefined
      ? []
      : [[examplePath(operation, part), fixed(() => JSON.stringify(value), "application/json")] as const]
  )
)

/** Documents that `prepare` made and `layer` has not taken yet. */
const ahead = new WeakMap<object, { readonly base: string; readonly answers: ReturnType<typeof answersOf> }>()

/**
 * Makes the documents of an api before `layer` serves them: this takes some 150 ms of a core, while the start waits for
 * its servers anyway.
 */
export const prepare = <Id extends string, Groups extends HttpApiGroup.Constraint>(
  api: HttpApi.HttpApi<Id, Groups>,
  base: string,
) => Effect.sync(() => void ahead.set(api, { base, answers: answersOf(api, base) }))

/**
 * `base` is the origin that the page's examples call (PUBLIC_URL). Documents that were not prepared are made for the first
 * request: most apps of tests are never asked for them.
 */
export const layer = <Id extends string, Groups extends HttpApiGroup.Constraint>(
  api: HttpApi.HttpApi<Id, Groups>,
  base: string,
) =>
  Layer.unwrap(Effect.sync(() => {
    const made = ahead.get(api)
    ahead.delete(api)
    let answers = made?.base === base ? made.answers : null
    const all = () => answers ??= answersOf(api, base)
    const answer = (name: "json" | "bus" | "page" | "style") => Effect.suspend(() => all()[name])
    return Layer.mergeAll(
      HttpRouter.add("GET", "/v1/openapi.json", answer("json")),
      ...partNames.map((part) => HttpRouter.add("GET", partPath(part), Effect.suspend(() => all().parts[part]))),
      ...exampleAnswers.map(([path, example]) => HttpRouter.add("GET", path as `/${string}`, example)),
      HttpRouter.add("GET", "/v1/asyncapi.json", answer("bus")),
      HttpRouter.add("GET", "/v1/docs", answer("page")),
      HttpRouter.add("GET", "/v1/docs/style.css", answer("style")),
    )
  }))
