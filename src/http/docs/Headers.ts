/** The headers of answers that the contract's schemas do not describe: the HTTP edge sets them, or a handler. */
import { at, type DocumentJson, type JsonObject } from "./DocumentJson.ts"

const text = (description: string, more: JsonObject = {}): JsonObject => ({
  description,
  schema: { type: "string", ...more },
})

/** `components/headers`: each header by its own name. */
export const headersOf: JsonObject = {
  "X-Request-ID": {
    ...text("The id of the request, also in the audit.", { pattern: "^[A-Za-z0-9._-]{1,128}$" }),
    required: true,
  },
  "WWW-Authenticate": text("RFC 6750; RFC 9470 where a fresh or stronger sign-in is needed."),
  "Retry-After": text("With a problem that passes: whole seconds after which to try again.", {
    pattern: "^[1-9][0-9]*$",
  }),
  "RateLimit": text("With `rate_limited`: the requests that are left, and the seconds until more are admitted."),
  "RateLimit-Policy": text("With `rate_limited`: the most requests, and the seconds in which that many are admitted."),
  "Idempotency-Replayed": text("`true` where the request was answered before, and this is the same answer again.", {
    enum: ["true"],
  }),
}

const named = (...names: ReadonlyArray<string>): JsonObject =>
  Object.fromEntries(names.map((name) => [name, { "$ref": `#/components/headers/${name}` }]))

const ofStatus: Readonly<Record<string, JsonObject>> = { "401": named("WWW-Authenticate") }

export const retryAfter: JsonObject = named("Retry-After")

/** The headers of the answer that all operations share. */
export const commonHeaders: JsonObject = named(
  "X-Request-ID",
  "WWW-Authenticate",
  "Retry-After",
  "RateLimit",
  "RateLimit-Policy",
)

/** `OK` instead of the name of the schema, which stands beside it. */
const phrases: Readonly<Record<string, string>> = {
  "200": "OK",
  "201": "Created",
  "202": "Accepted",
  "204": "No content",
}

/**
 * Adds to each answer the headers that it may carry beside `X-Request-ID`, which every answer carries: the answer that
 * all operations share names it, and the introduction. `parameters` are the operation's.
 */
export const withHeaders = (responses: JsonObject, parameters: DocumentJson): JsonObject => {
  const keyed = Array.isArray(parameters) && parameters.some((one) => at(one, "name") === "idempotency-key")
  return Object.fromEntries(
    Object.entries(responses).map(([status, response]) => {
      const headers = {
        ...ofStatus[status],
        ...(keyed && status.startsWith("2") ? named("Idempotency-Replayed") : {}),
        ...at(response, "headers") as JsonObject | undefined,
      }
      const described = /\s/.test(String(at(response, "description")))
      const phrase = described ? undefined : phrases[status]
      return [status, {
        ...response as JsonObject,
        ...(phrase === undefined ? {} : { description: phrase }),
        ...(Object.keys(headers).length > 0 ? { headers } : {}),
      }]
    }),
  )
}
