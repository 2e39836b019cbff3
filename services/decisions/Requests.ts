/**
 * What a person asks for on their own account: an institution, Access to a project, another role for a member; and what
 * happens once the policy review of it is through (docs/requests.md).
 *
 * What is asked is a command of two round trips (FencedCommand.ts), or runs in the caller's transaction, as all that is
 * carried out does, which must be one of `Transact`. An approved request
 * is not yet anything in effect at a product: those facts are kept apart.
 */
import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type * as Wire from "../../schemas/identity/Requests.ts"
import type { NotFound } from "../../schemas/problems/Floor.ts"
import type * as Problems from "../../schemas/problems/Identity.ts"
import { Database } from "../platform/database/Database.ts"
import type { Decision } from "../requests/PolicyReviews.ts"
import { askingForAccess } from "./Requests/AskAccess.ts"
import { askingForMembership, type MembershipAsked } from "./Requests/AskMembership.ts"
import { askingForOrganization } from "./Requests/AskOrganization.ts"
import { carryingOut } from "./Requests/CarriedOut.ts"
import type { By } from "./Requests/Filing.ts"
import { type OwnPage, ownRequests } from "./Requests/Listing.ts"

type RoleFault =
  | NotFound
  | Problems.AdministratorNotEffective
  | Problems.MembershipNotActive
  | Problems.NotCurrentSponsor
  | Problems.RoleRequired

export class Requests extends Context.Service<Requests, {
  /** Asks for an institution. InvalidToken: the person is not active any more. */
  readonly organization: (
    asked: Wire.RequestFields & By,
  ) => Effect.Effect<Wire.OrganizationRequest, Problems.InvalidToken | SqlError.SqlError>
  /** Asks for Access to a project, which need not be visible to the person otherwise. */
  readonly access: (
    asked: Wire.RequestCreate & By,
  ) => Effect.Effect<
    Wire.AccessRequest,
    NotFound | Problems.InvalidToken | Problems.InvalidState | Problems.RequestExists | SqlError.SqlError
  >
  /** Asks for a member's role and state in an institution. */
  readonly membership: (
    asked: MembershipAsked,
  ) => Effect.Effect<Wire.MembershipRequest, RoleFault | Problems.RequestExists | SqlError.SqlError>
  /** The person's own requests of every kind, newest first, the newest 100 where no page is asked for. */
  readonly mine: (personId: string, page?: OwnPage) => Effect.Effect<Wire.OwnRequests, SqlError.SqlError>
  /** Carries out an organization, access or membership request that everybody signed. */
  readonly carryOut: (
    decision: Decision,
  ) => Effect.Effect<void, Problems.EnvironmentHeld | Problems.InvalidState | SqlError.SqlError>
}>()("bailiwick/services/decisions/Requests") {
  static readonly layer = Layer.effect(
    Requests,
    Effect.gen(function* () {
      const { reads } = yield* Database
      return Requests.of({
        organization: yield* askingForOrganization,
        access: yield* askingForAccess,
        membership: yield* askingForMembership,
        mine: ownRequests(reads),
        carryOut: yield* carryingOut,
      })
    }),
  )
}
