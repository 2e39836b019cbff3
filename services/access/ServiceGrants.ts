/**
 * Lifecycle service grants: a project's owner proposes that a service may read the project's lifecycle, an independent
 * administrator approves, and either ends it at once (docs/requests.md). A repeated revocation is not refused: it
 * returns the grant as it is.
 *
 * The methods that change something run in the caller's transaction. Ids are made under the project's lock, in
 * ascending order, so that forward paging misses none.
 */
import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { PersonId, ProjectId, ServiceGrantId } from "../../schemas/BrandedIds.ts"
import type { GrantRead } from "../../schemas/identity/ServiceGrant.ts"
import type { NotFound } from "../../schemas/problems/HttpProblems.ts"
import type * as Problems from "../../schemas/problems/IdentityProblems.ts"
import type { HTTPValidationError } from "../../schemas/Validation.ts"
import { Database } from "../platform/database/Database.ts"
import type { InTransaction } from "../platform/database/UnitOfWork.ts"
import { approving, type GrantApproval } from "./ServiceGrants/ApproveGrant.ts"
import { grantReads, type OnGrant } from "./ServiceGrants/GrantReads.ts"
import { type GrantPage, listing } from "./ServiceGrants/Listing.ts"
import { type GrantProposal, proposing } from "./ServiceGrants/ProposeGrant.ts"
import { revoking } from "./ServiceGrants/RevokeGrant.ts"

type RoleFault =
  | NotFound
  | Problems.AdministratorNotEffective
  | Problems.MembershipNotActive
  | Problems.NotCurrentSponsor
  | Problems.RoleRequired

export class ServiceGrants extends Context.Service<ServiceGrants, {
  readonly propose: (
    proposal: GrantProposal,
  ) => Effect.Effect<
    GrantRead,
    RoleFault | Problems.EnvironmentMismatch | Problems.InvalidState | HTTPValidationError | SqlError.SqlError,
    InTransaction
  >
  /** `stepUp` is checked after the caller's rights and before the state. */
  readonly approve: (
    approval: GrantApproval,
  ) => Effect.Effect<
    GrantRead,
    | RoleFault
    | Problems.EnvironmentHeld
    | Problems.EnvironmentMismatch
    | Problems.FourEyesRequired
    | Problems.Held
    | Problems.InsufficientUserAuthentication
    | Problems.InvalidState
    | Problems.VersionConflict
    | SqlError.SqlError,
    InTransaction
  >
  readonly revoke: (revocation: OnGrant) => Effect.Effect<GrantRead, RoleFault | SqlError.SqlError, InTransaction>
  /** Ends one grant again, during recovery, as `system`; returns whether it was live. */
  readonly end: (grantId: ServiceGrantId, reason: string) => Effect.Effect<boolean, SqlError.SqlError, InTransaction>
  /** Ends every live grant of a withdrawn project; `by` is a person, or null for the directory. Returns how many. */
  readonly revokeAll: (
    projectId: ProjectId,
    by: PersonId | null,
    reason: string,
  ) => Effect.Effect<number, SqlError.SqlError, InTransaction>
  /** At most `limit` grants, ascending, after the one of `afterId`. */
  readonly list: (page: GrantPage) => Effect.Effect<ReadonlyArray<GrantRead>, RoleFault | SqlError.SqlError>
}>()("bailiwick/services/access/ServiceGrants") {
  /**
   * `issuers`: the issuers whose tokens services may use; a proposal without an issuer means the only one. `anyIssuer`:
   * every issuer is accepted (DEMO).
   */
  static readonly layer = (
    { anyIssuer = false, issuers }: { readonly issuers: ReadonlyArray<string>; readonly anyIssuer?: boolean },
  ) =>
    Layer.effect(
      ServiceGrants,
      Effect.gen(function* () {
        const { sql } = yield* Database
        const reads = grantReads(sql, (issuer) => anyIssuer || issuers.includes(issuer))
        const propose = yield* proposing(reads, issuers)
        const approve = yield* approving(reads)
        const { end, revoke, revokeAll } = yield* revoking(reads)
        return ServiceGrants.of({ propose, approve, revoke, end, revokeAll, list: yield* listing(reads) })
      }),
    )
}
