/**
 * The problem code of a request that an HTML page refused, for its audit: a page has no problem body with a code. The
 * edge provides it, the handler of the page sets it.
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
