/**
 * Invitations into an institution (docs/requests.md): written by a Sponsor or an administrator, reviewed, mailed, and
 * accepted by the person who has the mailed address, verified. Any other holder of the link waits for an administrator,
 * which does not hold up the invited person. In an institution without an administrator the first accepted invitation
 * makes one. A person who may invite may also revoke an invitation until it is accepted.
 *
 * An invitation is `held` until its review is approved and a mail can be sent. The token works in state `invited` only.
 * The methods are commands of two round trips (FencedCommand.ts), or run in the caller's transaction. Order of locks:
 * person, institution, memberships, review, request.
 */
import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { InstitutionEnrollments } from "../../schemas/identity/Institution.ts"
import type { AcceptedEnrollment, Enrollment } from "../../schemas/identity/RequestBodies.ts"
import type { NotFound } from "../../schemas/problems/HttpProblems.ts"
import type * as Problems from "../../schemas/problems/IdentityProblems.ts"
import { type Acceptance, accepting } from "./Enrollments/AcceptInvitation.ts"
import { carryingOut } from "./Enrollments/CarryOut.ts"
import { enrolling, type Invitation } from "./Enrollments/Enroll.ts"
import { type InvitationPreview, previewingInvitation } from "./Enrollments/InvitationPreview.ts"
import { type EnrollmentPage, listingEnrollments } from "./Enrollments/Listing.ts"
import { renewing } from "./Enrollments/RenewEnrollment.ts"
import { type Revocation, revoking } from "./Enrollments/RevokeEnrollment.ts"
import type { UnitOfWork } from "../platform/database/UnitOfWork.ts"
import type { Decision } from "../requests/PolicyReviews.ts"

type RoleFault =
  | NotFound
  | Problems.AdministratorNotEffective
  | Problems.MembershipNotActive
  | Problems.NotCurrentSponsor
  | Problems.RoleRequired

export class Enrollments extends Context.Service<Enrollments, {
  /** An institution's invitations, for a Sponsor, an effective administrator or an operator. Runs in no transaction. */
  readonly list: (page: EnrollmentPage) => Effect.Effect<InstitutionEnrollments, RoleFault | SqlError.SqlError>
  /** The invitation of a mailed link, for its page; null where no invitation has the token. */
  readonly preview: (token: string) => Effect.Effect<InvitationPreview | null, SqlError.SqlError>
  readonly enroll: (asked: Invitation) => Effect.Effect<Enrollment, RoleFault | SqlError.SqlError, UnitOfWork>
  /** Accepts by the token of the mailed link. RequestExists: another holder of the link waits for an administrator. */
  readonly accept: (
    asked: Acceptance,
  ) => Effect.Effect<
    AcceptedEnrollment,
    | NotFound
    | Problems.Held
    | Problems.InvalidToken
    | Problems.InvalidState
    | Problems.RequestExists
    | SqlError.SqlError,
    UnitOfWork
  >
  /** InvalidState: the invitation is accepted, revoked or expired already. */
  readonly revoke: (
    asked: Revocation,
  ) => Effect.Effect<Enrollment, RoleFault | Problems.InvalidState | SqlError.SqlError, UnitOfWork>
  /** InvalidState: the invitation is open, accepted, or to no address. */
  readonly renew: (
    asked: Revocation,
  ) => Effect.Effect<Enrollment, RoleFault | Problems.InvalidState | SqlError.SqlError, UnitOfWork>
  /** Sends a fully signed invitation, or admits the person who was waiting for an administrator. */
  readonly carryOut: (decision: Decision) => Effect.Effect<void, Problems.InvalidState | SqlError.SqlError, UnitOfWork>
}>()("bailiwick/services/decisions/Enrollments") {
  static readonly layer = Layer.effect(
    Enrollments,
    Effect.gen(function* () {
      return Enrollments.of({
        list: yield* listingEnrollments,
        preview: yield* previewingInvitation,
        enroll: yield* enrolling,
        accept: yield* accepting,
        revoke: yield* revoking,
        renew: yield* renewing,
        carryOut: yield* carryingOut,
      })
    }),
  )
}
