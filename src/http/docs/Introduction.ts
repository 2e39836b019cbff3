/** The document's introduction: what every operation has in common. Paragraphs are CommonMark with code and no lists. */

import { partNames, partPath } from "./ApiParts.ts"

interface Section {
  readonly title: string
  readonly paragraphs: ReadonlyArray<string>
}

export const summary =
  "Webhooks, domains and notifications of mail accounts (the mail API), and reviewed access of people to projects (the identity API)."

export const sections: ReadonlyArray<Section> = [
  {
    title: "Authentication",
    paragraphs: [
      "The mail API takes an API key, `Authorization: Bearer mail_k_…`, or a signed-in person's session cookie. The identity API and the lifecycle API take access tokens (RFC 9068) of the installation's issuers, for the audiences `service-management` and `service-lifecycle`. Each operation names what it takes; a credential of another API is 401.",
      "A token counts in the `Authorization` header only. Where a decision needs a fresh or stronger sign-in, 401 `insufficient_user_authentication` says by `WWW-Authenticate` what is needed (RFC 9470).",
    ],
  },
  {
    title: "Errors",
    paragraphs: [
      "An error is a problem of RFC 9457, `application/problem+json`: decide by `code`. `request_id` is also the header `X-Request-ID` of every answer; an operator finds by it what happened.",
      "422 is the exception: `application/json` in the form of FastAPI's `HTTPValidationError`, with all faults of the request at once. `loc` begins with `body`, `query`, `path` or `header`.",
      "An operation lists the problems that are its own. Those that any operation can meet are its `default` answer. A route that does not exist is 404 `not_found`, another method 405 `method_not_allowed` with `Allow`.",
    ],
  },
  {
    title: "Idempotency",
    paragraphs: [
      "Every POST takes an `Idempotency-Key`, and most of the identity API require one: 1 to 255 visible ASCII characters that the client makes anew for each intention. The same request with the same key is answered as before, with `Idempotency-Replayed: true`; another request with it is 409 `idempotency_key_reused`; one that comes while the first is under way is 409 `idempotency_in_progress`. So a request whose answer was lost is sent again as it was.",
      "A secret that an answer shows once is null in a repetition.",
    ],
  },
  {
    title: "Limits",
    paragraphs: [
      "A body has at most 256 KiB, the headers 8 KiB. Requests are counted by the minute, for each account on the mail API and for each principal on the others, over all processes. Beyond the limit the answer is 429 `rate_limited`, with `Retry-After` in seconds, `RateLimit` and `RateLimit-Policy`.",
      "503 passes by itself: try again, after `Retry-After` where it is there, with growing pauses where not.",
    ],
  },
  {
    title: "Pages of lists",
    paragraphs: [
      "Lists are newest first unless they say otherwise. Where a list takes `after_id`, the answer's `next_after_id` is the `after_id` of the next page, and null on the last. Where it takes `page`, pages count from 0 and `total` is exact. `limit` bounds a page.",
    ],
  },
  {
    title: "Times and ids",
    paragraphs: [
      "Times are RFC 3339; those of answers are in UTC with milliseconds and `Z`. Ids that this program makes are UUIDs; an id in a path that is none is not found.",
    ],
  },
  {
    title: "Versions",
    paragraphs: [
      "Paths begin with the version, `/v1`. Within it members, values of enumerations and operations are added only: ignore members that you do not know. What will be removed is announced by the headers `Deprecation` (RFC 9745) and `Sunset` (RFC 8594). Except where a page says otherwise, answers carry `Cache-Control: no-store`.",
    ],
  },
  {
    title: "Webhooks",
    paragraphs: [
      "The section `webhooks` of the document has the request that an endpoint receives for each of the eight events, signed as Standard Webhooks say.",
    ],
  },
]

/** The whole document's paragraph about its parts. */
const partsSection: Section = {
  title: "Parts",
  paragraphs: [
    `A client generator needs no more than what its client calls: ${
      partNames.map((part) => `\`${partPath(part)}\``).join(", ")
    } are parts of this document, each whole by itself.`,
  ],
}

const textOf = (all: ReadonlyArray<Section>): string =>
  [
    summary,
    ...all.flatMap(({ paragraphs, title }) => [`## ${title}`, ...paragraphs]),
  ].join("\n\n")

/** `info.description`, of the whole document and of a part. */
export const introduction = textOf([...sections, partsSection])
export const partIntroduction = textOf(sections)
