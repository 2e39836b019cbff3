/**
 * Step-up (RFC 9470): whether the caller proved recently and strongly enough who they are. Judged by the token alone, and
 * closed where it does not say: without `auth_time` nothing is fresh, an `acr` that means nothing here is no level.
 */
import { Clock, Effect } from "effect"
import type { Caller } from "../../schemas/api/Management.ts"
import { acrOf, type AssuranceLevel, reaches } from "../../schemas/identity/Assurance.ts"
import { InsufficientUserAuthentication } from "../../schemas/problems/Identity.ts"

/** What an operation asks for; null asks for nothing. */
export interface Demand {
  /** How old the sign-in may be, in whole seconds. */
  readonly maxAgeSeconds: number | null
  /** The level that it must have reached. */
  readonly aal: AssuranceLevel | null
}

type SignedIn = Pick<Caller["Service"], "authTime" | "aal">

/** Seconds since the sign-in, at `millis`; null where nobody knows. */
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
