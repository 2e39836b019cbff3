/** The outcome of a push (RFC 8935, 2.2 to 2.4): only status 202 means delivered, whatever else the answer holds. */
import type { Outcome } from "../../platform/Outbound.ts"
import { type PushRefusal, refusalIn } from "./PushRefusal.ts"

export type PushOutcome =
  | { readonly _tag: "delivered" }
  /** The receiver read the message and says why it refuses it. */
  | { readonly _tag: "refused"; readonly refusal: PushRefusal }
  /** `unanswered`: no answer came, and the receiver may have the message all the same. */
  | { readonly _tag: "failed"; readonly reason: string; readonly unanswered: boolean }

/** Faults after which no byte of the request has left. */
const before: ReadonlySet<string> = new Set(["dns", "connect", "tls", "blocked_address"])

export const verdictOf = ({ body, error, status }: Outcome): PushOutcome => {
  if (status === 202) return { _tag: "delivered" }
  const refusal = status === 400 && error === null ? refusalIn(body) : null
  if (refusal !== null) return { _tag: "refused", refusal }
  const unanswered = error !== null && status === null && !before.has(error)
  return { _tag: "failed", reason: error ?? `status ${status}`, unanswered }
}
