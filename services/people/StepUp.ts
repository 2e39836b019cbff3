/**
 * Step-up (RFC 9470): checks whether the caller's sign-in is recent and strong enough. Judged by the token alone, and
 * failing closed: without `auth_time` no sign-in is fresh, and an unknown `acr` is no level.
 */
import { Clock, Effect } from "effect"
import type { Caller } from "../../schemas/api/ManagementApi.ts"
import { acrOf, type AssuranceLevel, reaches } from "../../schemas/identity/Assurance.ts"
import { InsufficientUserAuthentication } from "../../schemas/problems/IdentityProblems.ts"

/** An operation's demand on the sign-in; null demands nothing. */
export interface Demand {
  /** How old the sign-in may be, in whole seconds. */
  readonly maxAgeSeconds: number | null
  /** The level that it must have reached. */
  readonly aal: AssuranceLevel | null
}

type SignedIn = Pick<Caller["Service"], "authTime" | "aal">

/** Seconds since the sign-in, at `millis`; null where the token does not tell. */
export const ageOf = ({ authTime }: Pick<SignedIn, "authTime">, millis: number): number | null =>
  authTime === null ? null : Math.max(0, Math.floor(millis / 1_000 - authTime))

/** Whether the demand is met at `millis`. */
export const satisfies = (caller: SignedIn, { aal, maxAgeSeconds }: Demand, millis: number): boolean => {
  const age = ageOf(caller, millis)
  return (aal === null || reaches(caller.aal, aal)) && (maxAgeSeconds === null || age !== null && age <= maxAgeSeconds)
}

/** Fails with the challenge of RFC 9470 where the demand is not met. */
export const check = Effect.fnUntraced(function* (caller: SignedIn, demand: Demand) {
  if (satisfies(caller, demand, yield* Clock.currentTimeMillis)) return
  return yield* new InsufficientUserAuthentication({
    ...(demand.aal === null ? {} : { acr_values: acrOf(demand.aal) }),
    ...(demand.maxAgeSeconds === null ? {} : { max_age: demand.maxAgeSeconds }),
  })
})
