/**
 * Reviews of Access grants: a Sponsor proposes exactly one active Access version, an independent administrator approves
 * exactly that decision, and either ends it; the Access itself is never touched (docs/api/identity.md).
 *
 * The methods that decide are commands of two round trips (FencedCommand.ts), or run in the caller's transaction. Order
 * of locks: person, institution, membership (Roles), Access, review.
 */
import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { AccessReviewId, InstitutionId, PersonId } from "../../schemas/BrandedIds.ts"
import type { GrantEvidence, GrantReceipt, Review } from "../../schemas/identity/AccessReview.ts"
import type { NotFound } from "../../schemas/problems/HttpProblems.ts"
import type * as Problems from "../../schemas/problems/IdentityProblems.ts"
import type { UnitOfWork } from "../platform/database/UnitOfWork.ts"
import type { VersionFault } from "./AccessReviews/LockActiveAccess.ts"
import { type Approval, approving, type ReviewDecision } from "./AccessReviews/ApproveReview.ts"
import type { ReviewPage } from "./AccessReviews/ListedRows.ts"
import { listing } from "./AccessReviews/Listing.ts"
import { type Proposal, proposing } from "./AccessReviews/Propose.ts"
import { readingEvidence } from "./AccessReviews/ReviewEvidence.ts"
import { revoking } from "./AccessReviews/RevokeReview.ts"

export type { ReviewDecision } from "./AccessReviews/ApproveReview.ts"
export type { ReviewPage } from "./AccessReviews/ListedRows.ts"

type RoleFault =
  | NotFound
  | Problems.AdministratorNotEffective
  | Problems.MembershipNotActive
  | Problems.NotCurrentSponsor
  | Problems.RoleRequired

type Fault = RoleFault | SqlError.SqlError

export class AccessReviews extends Context.Service<AccessReviews, {
  /**
   * The reviews of the institution, newest first, with their validity now, and the Accesses that could be proposed: the
   * JSON of a `GrantReviewList`; all of them, or a page.
   */
  readonly list: (
    personId: PersonId,
    institutionId: InstitutionId,
    page?: ReviewPage | null,
  ) => Effect.Effect<Uint8Array, RoleFault | SqlError.SqlError>
  /** One review of the institution, as the list shows it. */
  readonly one: (
    personId: PersonId,
    institutionId: InstitutionId,
    reviewId: AccessReviewId,
  ) => Effect.Effect<Review, Fault>
  /** The chain of evidence of one review of the institution. */
  readonly evidence: (
    personId: PersonId,
    institutionId: InstitutionId,
    reviewId: AccessReviewId,
  ) => Effect.Effect<GrantEvidence, Fault>
  readonly propose: (
    proposal: Proposal,
  ) => Effect.Effect<
    GrantReceipt,
    Fault | VersionFault | Problems.GrantEventMismatch | Problems.ReviewExists,
    UnitOfWork
  >
  /** `stepUp` is checked after the caller's rights and before the state. */
  readonly approve: (
    approval: Approval,
  ) => Effect.Effect<
    GrantReceipt,
    | Fault
    | VersionFault
    | Problems.FourEyesRequired
    | Problems.Held
    | Problems.InsufficientUserAuthentication
    | Problems.PreconditionFailed
    | Problems.InvalidState,
    UnitOfWork
  >
  readonly revoke: (
    decision: ReviewDecision,
  ) => Effect.Effect<GrantReceipt, Fault | Problems.PreconditionFailed | Problems.InvalidState, UnitOfWork>
  /** Ends a review again, during recovery, whose end was lost; returns whether it was open. */
  readonly end: (reviewId: AccessReviewId, reason: string) => Effect.Effect<boolean, SqlError.SqlError, UnitOfWork>
}>()("bailiwick/services/access/AccessReviews") {
  static readonly layer = Layer.effect(
    AccessReviews,
    Effect.gen(function* () {
      const propose = yield* proposing
      const approve = yield* approving
      const evidence = yield* readingEvidence
      return AccessReviews.of({ ...(yield* listing), evidence, propose, approve, ...(yield* revoking) })
    }),
  )
}
