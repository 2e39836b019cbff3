/**
 * The actor of a request, known to the edge even where the request fails: authentication sets it with `actsAs`, the
 * audit of failed requests reads it.
 */
import { Context, Effect } from "effect"

export class RequestActor extends Context.Reference<{
  /** `account:<id>`, `person:<id>`, `service:<id>`, or null while no caller is recognised. */
  actor: string | null
  /** Whether the request's credential is valid, even where its account is not known. */
  accepted: boolean
  /** The account that the request is charged to, while its credential is not checked yet; `account:<id>` or null. */
  charged: string | null
}>("bailiwick/http/edge/RequestActor", { defaultValue: () => ({ actor: null, accepted: false, charged: null }) }) {}

/** Names the actor of the current request (`account:0199…`). */
export const actsAs = (actor: string): Effect.Effect<void> =>
  Effect.map(RequestActor, (current) => {
    current.actor = actor
    current.accepted = true
  })

/** Names the account that the current request is charged to. It may still turn out that its credential was withdrawn. */
export const chargedTo = (charged: string): Effect.Effect<void> =>
  Effect.map(RequestActor, (current) => {
    current.charged = charged
  })

/** Marks the credential of the current request as valid, where its account is not known. */
export const accepted: Effect.Effect<void> = Effect.map(RequestActor, (current) => {
  current.accepted = true
})
