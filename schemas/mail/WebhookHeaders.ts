/** Custom headers and basic authentication of a webhook's requests: written here, and shown by no answer. */
import { Schema } from "effect"
import { complains, patternMismatch, secretInput, valueError } from "../Validation/Fault.ts"
import { maxCodePoints } from "../Validation/Scalars.ts"

/**
 * Names that a webhook may not set: they frame the request, control the connection, or are hop-by-hop (RFC 9110,
 * section 7.6.1), or the delivery sets them itself.
 */
const reserved = new Set([
  ...["accept-encoding", "connection", "expect", "host", "http2-settings", "keep-alive", "te", "trailer"],
  ...["transfer-encoding", "upgrade", "user-agent"],
])
const reservedPrefixes = ["content-", "proxy-", "webhook-", "x-webhook-"]

/** Whether a webhook may not set a header of this name. */
const isReservedHeader = (name: string): boolean => {
  const lower = name.toLowerCase()
  return reserved.has(lower) || reservedPrefixes.some((prefix) => lower.startsWith(prefix))
}

const maxHeaders = 10
const maxTotal = 4_096

const matching = (pattern: RegExp, advertised: string) =>
  Schema.makeFilter<string>((text) => pattern.test(text), {
    expected: "a text of the pattern",
    toJsonSchema: () => [{ pattern: advertised }, true],
    ...complains(patternMismatch(advertised)),
  })

/** A rule that no JSON Schema says. */
const ruled = <A>(holds: (value: A) => boolean, message: string) =>
  Schema.makeFilter<A>(holds, {
    expected: message,
    toJsonSchema: () => [{}, true],
    ...complains(valueError(message)),
  })

/** A token (RFC 9110, section 5.6.2). */
const Name = Schema.String.check(
  maxCodePoints(64),
  matching(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"),
  ruled<string>(
    (text) => !isReservedHeader(text),
    "Header should not be one that the delivery or its connection sets.",
  ),
).annotate({
  description: "Not `User-Agent`, `Content-*`, `Webhook-*`, `X-Webhook-*`, nor a header that controls the connection",
})

/** Visible ASCII, with blanks inside (RFC 9110, section 5.5). */
const Value = Schema.String.check(
  maxCodePoints(1_024),
  matching(/^[!-~](?:[\t -~]*[!-~])?$/, "^[!-~](?:[\\t -~]*[!-~])?$"),
).annotate({ ...secretInput, writeOnly: true })

export const CustomHeader = Schema.Struct({ name: Name, value: Value }).annotate({ identifier: "CustomHeader" })
export type CustomHeader = typeof CustomHeader.Type

export const CustomHeaders = Schema.Array(CustomHeader).check(
  Schema.isMaxLength(maxHeaders),
  ruled<ReadonlyArray<CustomHeader>>(
    (headers) => new Set(headers.map(({ name }) => name.toLowerCase())).size === headers.length,
    "Headers should have distinct names.",
  ),
  ruled<ReadonlyArray<CustomHeader>>(
    (headers) => headers.reduce((total, { name, value }) => total + name.length + value.length, 0) <= maxTotal,
    `Headers should have at most ${maxTotal} characters together.`,
  ),
).annotate({
  identifier: "CustomHeaders",
  description: "At most 4096 characters together. An empty list removes them. No answer shows the values",
})

const controlled = "\\p{Cc}\\p{Cs}"

/** Characters as RFC 7617, section 2, has them: no control characters, and no colon in the user's name. */
export const BasicAuth = Schema.Struct({
  username: Schema.String.check(maxCodePoints(255), matching(/^[^\p{Cc}\p{Cs}:]*$/u, `^[^${controlled}:]*$`))
    .annotate(secretInput),
  password: Schema.String.check(maxCodePoints(255), matching(/^[^\p{Cc}\p{Cs}]*$/u, `^[^${controlled}]*$`))
    .annotate({ ...secretInput, writeOnly: true }),
}).annotate({
  identifier: "WebhookBasicAuth",
  description: "Sent as `Authorization: Basic`, in UTF-8. Two empty texts remove it. No answer shows it",
})
export type BasicAuth = typeof BasicAuth.Type
