/**
 * Who a request acts for, known to the edge even where the request fails: authentication writes it down with
 * `actsAs`, the audit of failed requests reads it.
 */
import { Context, Effect } from "effect"

export class RequestActor extends Context.Reference<{
  /** `account:<id>`, `person:<id>`, `service:<id>`, or null while nobody is recognised. */
  actor: string | null
  /** The credential that was sent is good, whoever's it is. */
  accepted: boolean
}>("bailiwick/http/edge/RequestActor", { defaultValue: () => ({ actor: null, accepted: false }) }) {}

/** Names the actor of the current request (`account:0199…`). */
export const actsAs = (actor: string): Effect.Effect<void> =>
  Effect.map(RequestActor, (current) => {
    current.actor = actor
    current.accepted = true
  })

/** Says that the credential of the current request is good where its account is not known. */
export const accepted: Effect.Effect<void> = Effect.map(RequestActor, (current) => {
  current.accepted = true
})
