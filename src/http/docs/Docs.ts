/**
 * `GET /v1/openapi.json` and the reference page `GET /v1/docs`: public, made once, without content from other hosts.
 * The page works without scripts and its policy admits none.
 */
import { Effect, Layer } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import type { HttpApi, HttpApiGroup } from "effect/http-api"
import { createHash } from "node:crypto"
import { document } from "./Document.ts"
import { page } from "./DocsPage.ts"
import { style } from "./DocsStyle.ts"

const policy = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/** An answer with fixed bytes, or 304 for a client that has them already. */
const fixed = (text: string, contentType: string) => {
  const bytes = new TextEncoder().encode(text)
  const etag = `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 22)}"`
  const headers = { etag, "cache-control": "public, max-age=60", "content-security-policy": policy }
  const whole = HttpServerResponse.uint8Array(bytes, { contentType, headers })
  const unchanged = HttpServerResponse.empty({ status: 304, headers })
  return Effect.map(
    HttpServerRequest.HttpServerRequest,
    (request) => request.headers["if-none-match"]?.includes(etag) ? unchanged : whole,
  )
}

const answersOf = <Id extends string, Groups extends HttpApiGroup.Constraint>(
  api: HttpApi.HttpApi<Id, Groups>,
  base: string,
) => {
  const spec = document(api)
  return {
    json: fixed(JSON.stringify(spec), "application/json"),
    page: fixed(page(spec, base).text, "text/html; charset=utf-8"),
    style: fixed(style, "text/css; charset=utf-8"),
  }
}

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

/** `base` is the origin that the page's examples call (PUBLIC_URL). */
export const layer = <Id extends string, Groups extends HttpApiGroup.Constraint>(
  api: HttpApi.HttpApi<Id, Groups>,
  base: string,
) =>
  Layer.unwrap(Effect.sync(() => {
    const made = ahead.get(api)
    ahead.delete(api)
    const { json, page, style } = made?.base === base ? made.answers : answersOf(api, base)
    return Layer.mergeAll(
      HttpRouter.add("GET", "/v1/openapi.json", json),
      HttpRouter.add("GET", "/v1/docs", page),
      HttpRouter.add("GET", "/v1/docs/style.css", style),
    )
  }))
