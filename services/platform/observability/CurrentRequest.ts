/** The request or job for which code runs; the audit and the logs carry its id. */
import { Context } from "effect"

/**
 * An `X-Request-ID` that the client chose, as the audit and the logs write it. No id that this program makes and none
 * that a client may choose has a colon, so the two cannot be confused.
 */
export const ofClient = (requestId: string): string => `client:${requestId}`

export class CurrentRequest extends Context.Reference<{
  /** The `X-Request-ID` of the answer, as `ofClient` writes it where the client chose it, or null outside a request. */
  readonly requestId: string | null
  /** The route's template (`/v1/webhooks/{webhook_id}`), never the concrete path: paths may hold tokens. */
  readonly route: string | null
}>("bailiwick/services/platform/observability/CurrentRequest", {
  defaultValue: () => ({ requestId: null, route: null }),
}) {}
