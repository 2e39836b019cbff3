/** Sets the headers of every answer, and completes the body of a problem. */
import { HttpServerResponse } from "effect/http"
import { detailOf } from "./Details.ts"

export interface Occurrence {
  readonly instance: string
  readonly requestId: string
  readonly auditId: string | null
}

type Members = Readonly<Record<string, unknown>>

const decoder = new TextDecoder()

/** The members of a problem's body, or undefined for any other answer. */
export const problemIn = (response: HttpServerResponse.HttpServerResponse): Members | undefined => {
  const { body } = response
  if (body._tag !== "Uint8Array" || !body.contentType.startsWith("application/problem+json")) return undefined
  return JSON.parse(decoder.decode(body.body)) as Members
}

const challenge = (problem: Members): string => {
  if (problem["code"] === "invalid_credentials") return "Bearer"
  const parameters = [
    `error="${String(problem["code"])}"`,
    ...(typeof problem["acr_values"] === "string" ? [`acr_values="${problem["acr_values"]}"`] : []),
    ...(typeof problem["max_age"] === "number" ? [`max_age="${problem["max_age"]}"`] : []),
  ]
  return `Bearer ${parameters.join(", ")}`
}

const headersOf = (response: HttpServerResponse.HttpServerResponse, problem: Members): Record<string, string> => {
  const retryAfter = problem["retry_after"]
  const { limit, window_seconds: window } = problem
  return {
    ...(response.status === 401 && !response.headers["www-authenticate"]
      ? { "www-authenticate": challenge(problem) }
      : {}),
    // RFC 6750, 3.1: the token is valid, but its grants do not cover the scope.
    ...(response.status === 403 && typeof problem["scope"] === "string"
      ? { "www-authenticate": `Bearer error="insufficient_scope", scope="${problem["scope"]}"` }
      : {}),
    ...(typeof retryAfter === "number" ? { "retry-after": String(retryAfter) } : {}),
    ...(response.status === 429 && typeof retryAfter === "number"
      ? { "ratelimit": `"default";r=0;t=${retryAfter}` }
      : {}),
    ...(typeof limit === "number" && typeof window === "number"
      ? { "ratelimit-policy": `"default";q=${limit};w=${window}` }
      : {}),
  }
}

/** Adds instance, request_id and audit_id to a problem, and the headers that follow from its members. */
export const completed = (
  response: HttpServerResponse.HttpServerResponse,
  problem: Members,
  occurrence: Occurrence,
): HttpServerResponse.HttpServerResponse => {
  const { type, title, status, detail, code, ...rest } = problem
  const body = {
    type,
    title,
    status,
    detail: detail ?? detailOf(problem) ?? title,
    ...rest,
    instance: occurrence.instance,
    code,
    request_id: occurrence.requestId,
    audit_id: occurrence.auditId,
  }
  return HttpServerResponse.jsonUnsafe(body, {
    status: response.status,
    contentType: "application/problem+json",
    headers: { ...response.headers, ...headersOf(response, problem) },
    cookies: response.cookies,
  })
}

const always: Readonly<Record<string, string>> = {
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
}

const unlessSet: Readonly<Record<string, string>> = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
}

/**
 * Sets the headers of every answer. An endpoint's own cache-control and content-security-policy stay, except that
 * failures are never cached. `last`: the connection ends with this answer.
 */
export const headed = (response: HttpServerResponse.HttpServerResponse, requestId: string, last = false) => {
  const missing = Object.entries(unlessSet).filter(([name]) => response.headers[name] === undefined)
  return HttpServerResponse.setHeaders(response, {
    ...always,
    ...Object.fromEntries(missing),
    ...(response.status >= 400 ? { "cache-control": "no-store" } : {}),
    ...(last ? { connection: "close" } : {}),
    "x-request-id": requestId,
  })
}
