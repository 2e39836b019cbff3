/**
 * Requests of persons for an institution, for Access to a project, for another role of a member, that a
 * member's authenticators are removed, and that an Access is revoked; and what is done once their policy reviews are approved (docs/requests.md).
 *
 * A request, and carrying it out, is a command of two round trips (FencedCommand.ts), or runs in the caller's
 * transaction. An approved request does not mean that a product has applied it: the two are kept apart.
 */
import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { PersonId } from "../../schemas/BrandedIds.ts"
import type * as Wire from "../../schemas/identity/RequestBodies.ts"
import type { NotFound } from "../../schemas/problems/HttpProblems.ts"
import type * as Problems from "../../schemas/problems/IdentityProblems.ts"
import type { HTTPValidationError } from "../../schemas/Validation.ts"
import type { AnswerFault } from "../access/AnswerableAccess.ts"
import { Database } from "../platform/database/Database.ts"
import type { InTransaction, UnitOfWork } from "../platform/database/UnitOfWork.ts"
import type { Decision } from "../requests/PolicyReviews.ts"
import { type AccessAsked, askingForAccess } from "./Requests/AskAccess.ts"
import { askingForMembership, type MembershipAsked } from "./Requests/AskMembership.ts"
import { askingForOrganization } from "./Requests/AskOrganization.ts"
import { askingForReset, type ResetAsked } from "./Requests/AskReset.ts"
import { askingForRevocation, type RevocationAsked } from "./Requests/AskRevocation.ts"
import { carryingOut } from "./Requests/CarriedOut.ts"
import type { By } from "./Requests/Filing.ts"
import { type OwnPage, ownRequests } from "./Requests/Listing.ts"
import { resettingAuthenticators } from "./Requests/ResetAuthenticators.ts"

type RoleFault =
  | NotFound
  | Problems.AdministratorNotEffective
  | Problems.MembershipNotActive
  | Problems.NotCurrentSponsor
  | Problems.RoleRequired

export class Requests extends Context.Service<Requests, {
  /** Requests an institution. InvalidToken: the person is no longer active. */
  readonly organization: (
    asked: Wire.RequestFields & By,
  ) => Effect.Effect<Wire.OrganizationRequest, Problems.InvalidToken | SqlError.SqlError, UnitOfWork>
  /**
   * Requests Access to a project, which need not be visible to the person otherwise; or a later end of the Access that the
   * person has.
   */
  readonly access: (
    asked: AccessAsked,
  ) => Effect.Effect<
    Wire.AccessRequest,
    | NotFound
    | Problems.InvalidToken
    | Problems.InvalidState
    | Problems.RequestExists
    | HTTPValidationError
    | SqlError.SqlError,
    UnitOfWork
  >
  /** Requests a role and state of a member of an institution. */
  readonly membership: (
    asked: MembershipAsked,
  ) => Effect.Effect<Wire.MembershipRequest, RoleFault | Problems.RequestExists | SqlError.SqlError, UnitOfWork>
  /** Requests that all authenticators of a member are removed. */
  readonly reset: (
    asked: ResetAsked,
  ) => Effect.Effect<
    Wire.AuthenticatorResetRequest,
    RoleFault | Problems.FourEyesRequired | Problems.RequestExists | SqlError.SqlError,
    UnitOfWork
  >
  /** Proposes that an Access is revoked; for an owner of its project, a Sponsor or an administrator. */
  readonly revocation: (
    asked: RevocationAsked,
  ) => Effect.Effect<Wire.AccessRevocationRequest, AnswerFault | Problems.RequestExists, InTransaction>
  /** Carries out a request for a reset. */
  readonly resetAuthenticators: (decision: Decision) => Effect.Effect<void, SqlError.SqlError, InTransaction>
  /** The person's own requests of every kind, newest first; by default the newest 100. */
  readonly mine: (personId: PersonId, page?: OwnPage) => Effect.Effect<Wire.OwnRequests, SqlError.SqlError>
  /** Carries out a fully signed organization, access, revocation or membership request. */
  readonly carryOut: (
    decision: Decision,
  ) => Effect.Effect<void, Problems.EnvironmentHeld | Problems.InvalidState | SqlError.SqlError, UnitOfWork>
}>()("bailiwick/services/decisions/Requests") {
  static readonly layer = Layer.effect(
    Requests,
    Effect.gen(function* () {
      const { reads } = yield* Database
      return Requests.of({
        organization: yield* askingForOrganization,
        access: yield* askingForAccess,
        membership: yield* askingForMembership,
        reset: yield* askingForReset,
        revocation: yield* askingForRevocation,
        resetAuthenticators: yield* resettingAuthenticators,
        mine: ownRequests(reads),
        carryOut: yield* carryingOut,
      })
    }),
  )
}
