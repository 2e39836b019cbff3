/**
 * Invitations into an institution (docs/requests.md): written by a Sponsor or an administrator, reviewed, mailed,
 * accepted by the person whose verified address it went to. Anyone else who holds the link waits for an administrator;
 * the invited person is not held up by that. The first that is accepted where nobody administrates makes an administrator.
 * Whoever may invite may take an invitation back until it is accepted.
 *
 * `held` until the review is through and a mail can go out. The token acts in state `invited` alone.
 * The methods are commands of two round trips (FencedCommand.ts), or run in the caller's transaction, which must be one of
 * `Transact`. Order of locks: person, institution, memberships, review, request.
 */
import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { AcceptedEnrollment, Enrollment } from "../../schemas/identity/Requests.ts"
import type { NotFound } from "../../schemas/problems/Floor.ts"
import type * as Problems from "../../schemas/problems/Identity.ts"
import { type Acceptance, accepting } from "./Enrollments/Accept.ts"
import { carryingOut } from "./Enrollments/CarryOut.ts"
import { enrolling, type Invitation } from "./Enrollments/Enroll.ts"
import { type Revocation, revoking } from "./Enrollments/Revoke.ts"
import type { Decision } from "../requests/PolicyReviews.ts"

type RoleFault =
  | NotFound
  | Problems.AdministratorNotEffective
  | Problems.MembershipNotActive
  | Problems.NotCurrentSponsor
  | Problems.RoleRequired

export class Enrollments extends Context.Service<Enrollments, {
  readonly enroll: (asked: Invitation) => Effect.Effect<Enrollment, RoleFault | SqlError.SqlError>
  /** By the token of the mailed link. RequestExists: another person than the invited one waits for an administrator. */
  readonly accept: (
    asked: Acceptance,
  ) => Effect.Effect<
    AcceptedEnrollment,
    | NotFound
    | Problems.Held
    | Problems.InvalidToken
    | Problems.InvalidState
    | Problems.RequestExists
    | SqlError.SqlError
  >
  /** InvalidState: it is accepted, revoked or expired already. */
  readonly revoke: (
    asked: Revocation,
  ) => Effect.Effect<Enrollment, RoleFault | Problems.InvalidState | SqlError.SqlError>
  /** Sends the invitation that everybody signed, or lets in who was waiting for an administrator. */
  readonly carryOut: (decision: Decision) => Effect.Effect<void, Problems.InvalidState | SqlError.SqlError>
}>()("bailiwick/services/decisions/Enrollments") {
  static readonly layer = Layer.effect(
    Enrollments,
    Effect.gen(function* () {
      return Enrollments.of({
        enroll: yield* enrolling,
        accept: yield* accepting,
        revoke: yield* revoking,
        carryOut: yield* carryingOut,
      })
    }),
  )
}
