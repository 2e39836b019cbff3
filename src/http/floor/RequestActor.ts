/**
 * Who a request acts for, known to the edge even where the request fails: authentication writes it down with
 * `actsAs`, the audit of failed requests reads it.
 */
import { Context, Effect } from "effect"

export class RequestActor extends Context.Reference<{
  /** `account:<id>`, `person:<id>`, `service:<id>`, or null while nobody is recognised. */
  actor: string | null
}>("bailiwick/http/floor/RequestActor", { defaultValue: () => ({ actor: null }) }) {}

/** Names the actor of the current request (`account:0199…`). */
export const actsAs = (actor: string): Effect.Effect<void> =>
  Effect.map(RequestActor, (current) => {
    current.actor = actor
  })
