/**
 * `If-Match` of a decision (RFC 9110, 13.1.1): the entity tags of the evidence that the decider saw. The comparison is
 * strong, so weak tags are ignored, and a header that is no list of tags matches no evidence.
 */
import { Effect } from "effect"
import { HttpServerRequest } from "effect/http"

const tag = String.raw`(?:W\/)?"[\x21\x23-\x7e\x80-\u{10ffff}]*"`
const tags = new RegExp(String.raw`^[ \t,]*${tag}(?:[ \t]*,[ \t,]*${tag})*[ \t,]*$`, "u")
const each = new RegExp(tag, "gu")

/**
 * The strong tags of the header; undefined without a condition: for no header, or for `*`, which any evidence meets.
 */
export const seenTags = (header: string | undefined): ReadonlyArray<string> | undefined => {
  const sent = header?.trim()
  if (sent === undefined || sent === "*") return undefined
  if (!tags.test(sent)) return []
  return [...sent.matchAll(each)].map(([one]) => one).filter((one) => one.startsWith(`"`)).map((one) =>
    one.slice(1, -1)
  )
}

/** `seenTags` of the request. */
export const ifMatch = Effect.map(
  HttpServerRequest.HttpServerRequest,
  ({ headers }) => seenTags(headers["if-match"]),
)
