/**
 * What a request that a page refused came to, for its audit: a page has no problem's body to read a code from. The edge
 * makes it, whoever answers with a page writes it.
 */
import { Context, Effect } from "effect"

export class RequestOutcome extends Context.Reference<{
  /** A problem's code, or null while nothing was refused. */
  code: string | null
}>("bailiwick/http/edge/RequestOutcome", { defaultValue: () => ({ code: null }) }) {}

/** Answers with a page, audited as a refusal of this code where the page's status is one of a failure. */
export const refusing = <A>(code: string, page: A): Effect.Effect<A> =>
  Effect.map(RequestOutcome, (current) => {
    current.code = code
    return page
  })
