/** The headers of answers that the contract's schemas do not describe: the HTTP edge sets them, or a handler. */
import { at, type DocumentJson, type JsonObject } from "./DocumentJson.ts"

const text = (description: string, more: JsonObject = {}): JsonObject => ({
  description,
  schema: { type: "string", ...more },
})

const always: JsonObject = {
  "X-Request-ID": {
    ...text("The id of the request, also in the audit.", { pattern: "^[A-Za-z0-9._-]{1,128}$" }),
    required: true,
  },
  "Cache-Control": text("`no-store`, unless the endpoint sets another value."),
}

const seconds = text("Whole seconds after which to try again.", { pattern: "^[1-9][0-9]*$" })

const ofStatus: Readonly<Record<string, JsonObject>> = {
  "401": { "WWW-Authenticate": text("RFC 6750; RFC 9470 where a fresh or stronger sign-in is needed.") },
  "409": { "Retry-After": { ...seconds, description: "With `idempotency_in_progress`: whole seconds." } },
  "429": {
    "Retry-After": seconds,
    "RateLimit": text("The requests that are left, and the seconds until more are admitted."),
    "RateLimit-Policy": text("The most requests, and the seconds in which that many are admitted."),
  },
  "503": { "Retry-After": { ...seconds, description: "With `held`: whole seconds." } },
}

const replayed: JsonObject = {
  "Idempotency-Replayed": text("`true` where the request was answered before, and this is the same answer again.", {
    enum: ["true"],
  }),
}

/** Adds to each answer the headers that it may carry. `parameters` are the operation's. */
export const withHeaders = (responses: JsonObject, parameters: DocumentJson): JsonObject => {
  const keyed = Array.isArray(parameters) && parameters.some((one) => at(one, "name") === "idempotency-key")
  return Object.fromEntries(
    Object.entries(responses).map(([status, response]) => [
      status,
      {
        ...response as JsonObject,
        headers: {
          ...always,
          ...ofStatus[status],
          ...(keyed && status.startsWith("2") ? replayed : {}),
          ...at(response, "headers") as JsonObject | undefined,
        },
      },
    ]),
  )
}
