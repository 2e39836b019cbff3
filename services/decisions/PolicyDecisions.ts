/**
 * Decisions on policy reviews (docs/requests.md): each required role is signed by a holder who is neither the author nor
 * one of the earlier signers. The last signature carries the request out, in the same transaction.
 *
 * The methods that decide are commands of two round trips (FencedCommand.ts), or run in the caller's transaction;
 * decisions about a project and the approval of a link have to. Order of locks: the project's turn, people,
 * institution, memberships, project, review, request. A signature is judged by the loaded rows and counts only if these
 * are unchanged when it is written: a role that is revoked at the same moment signs nothing.
 */
import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { PersonId, PolicyReviewId, RequestId } from "../../schemas/BrandedIds.ts"
import type { PolicyReview, PolicyReviewDetail, PolicyReviews as List } from "../../schemas/identity/PolicyReview.ts"
import type { OwnRequest } from "../../schemas/identity/RequestBodies.ts"
import type { NotFound } from "../../schemas/problems/HttpProblems.ts"
import type * as Problems from "../../schemas/problems/IdentityProblems.ts"
import { Links } from "../links/Links.ts"
import { Database } from "../platform/database/Database.ts"
import type { NeedsTransaction } from "../platform/database/FencedCommand.ts"
import { Timers } from "../platform/database/Timers.ts"
import type { InTransaction, UnitOfWork } from "../platform/database/UnitOfWork.ts"
import { Projects } from "../projects/Projects.ts"
import { approving } from "./PolicyDecisions/ApprovePolicy.ts"
import { declining } from "./PolicyDecisions/DeclinePolicy.ts"
import { listing, type Page } from "./PolicyDecisions/Listing.ts"
import { oneReview } from "./PolicyDecisions/OneReview.ts"
import { ownDecisions, type OwnPage } from "./PolicyDecisions/OwnDecisions.ts"
import type { PolicyDecision } from "./PolicyDecisions/LoadPolicyReview.ts"
import { type Withdrawal, withdrawing } from "./PolicyDecisions/WithdrawRequest.ts"
import { requestRows } from "../requests/RequestRows.ts"
import { expiry } from "./Requests/RequestExpiry.ts"

type Refusal =
  | NotFound
  | Problems.AdministratorNotEffective
  | Problems.MembershipNotActive
  | Problems.NotCurrentSponsor
  | Problems.RoleRequired
  | Problems.FourEyesRequired
  | Problems.InsufficientUserAuthentication
  | Problems.InvalidState

export class PolicyDecisions extends Context.Service<PolicyDecisions, {
  /** NeedsTransaction: carrying out the last signature needs more than one statement. */
  readonly approve: (decision: PolicyDecision) => Effect.Effect<
    PolicyReview,
    | Refusal
    | NeedsTransaction
    | Problems.EnvironmentHeld
    | Problems.FourEyesCollapsed
    | Problems.Held
    | Problems.PreviewChanged
    | Problems.VersionConflict
    | SqlError.SqlError,
    UnitOfWork
  >
  /** Declines, by any person who could approve: one is enough. */
  readonly decline: (
    decision: PolicyDecision,
  ) => Effect.Effect<PolicyReview, Refusal | NeedsTransaction | SqlError.SqlError, UnitOfWork>
  /** Withdraws the person's own request, which waits for its decision or has not taken effect yet. */
  readonly withdraw: (
    withdrawal: Withdrawal,
  ) => Effect.Effect<
    OwnRequest,
    NotFound | Problems.InvalidState | NeedsTransaction | SqlError.SqlError,
    UnitOfWork
  >
  /** The open reviews that the person may act on; in other states, the reviews that the person could have acted on. */
  readonly list: (page: Page) => Effect.Effect<List, SqlError.SqlError>
  /** The reviews that the person approved or declined, newest first. */
  readonly decidedBy: (page: OwnPage) => Effect.Effect<List, SqlError.SqlError>
  /** A review that the person may act on, or could have acted on, or decided; an open one with those who may sign it. */
  readonly one: (
    personId: PersonId,
    reviewId: PolicyReviewId,
  ) => Effect.Effect<PolicyReviewDetail, NotFound | SqlError.SqlError>
  /** Applies due changes of a request, such as its expiry; called by its timers. */
  readonly settle: (requestId: RequestId) => Effect.Effect<void, SqlError.SqlError, InTransaction>
}>()("bailiwick/services/decisions/PolicyDecisions") {
  static readonly layer = Layer.effect(
    PolicyDecisions,
    Effect.gen(function* () {
      const { reads, sql } = yield* Database
      const links = yield* Links
      const projects = yield* Projects
      const timers = yield* Timers
      const rows = requestRows(sql)
      const expire = yield* expiry

      const settle = Effect.fn("PolicyDecisions.settle")(function* (requestId: RequestId) {
        const row = yield* rows.byId(requestId)
        if (row === null) return yield* timers.set(requestId, [])
        if (row.kind === "launch") return yield* projects.settle(row)
        if (row.effective_at !== null) return yield* links.settle(row)
        yield* expire(requestId)
      })

      return PolicyDecisions.of({
        approve: yield* approving,
        decline: yield* declining,
        withdraw: yield* withdrawing,
        list: listing(reads),
        decidedBy: ownDecisions(reads),
        one: oneReview(reads),
        settle,
      })
    }),
  )
}
