/** What is known of the request or job in whose name code runs; the audit and the logs carry it. */
import { Context } from "effect"

export class CurrentRequest extends Context.Reference<{
  /** The `X-Request-ID` of the answer, or null outside a request. */
  readonly requestId: string | null
  /** The route's template (`/v1/webhooks/{webhook_id}`), never the concrete path: paths may hold tokens. */
  readonly route: string | null
}>("bailiwick/services/platform/CurrentRequest", { defaultValue: () => ({ requestId: null, route: null }) }) {}
