/**
 * `If-Match` of a decision (RFC 9110, 13.1.1): the entity tags of what the decider saw. Tags are compared strongly, so a
 * weak one is none of them, and a header that is no list of tags matches nothing: in doubt, nobody saw it.
 */
import { Effect } from "effect"
import { HttpServerRequest } from "effect/http"

const tag = String.raw`(?:W\/)?"[\x21\x23-\x7e\x80-\u{10ffff}]*"`
const tags = new RegExp(String.raw`^[ \t,]*${tag}(?:[ \t]*,[ \t,]*${tag})*[ \t,]*$`, "u")
const each = new RegExp(tag, "gu")

/** Undefined where no condition is made: no header, or `*`, which any evidence meets. */
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
