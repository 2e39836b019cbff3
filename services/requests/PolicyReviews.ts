/**
 * Policy reviews as rows: a request opens a review, which collects signatures. The room decisions holds who may sign
 * and what the last signature carries out.
 */
import { Clock, Context, DateTime, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import {
  type InstitutionId,
  type PersonId,
  PolicyReviewId,
  type ProjectId,
  type RequestId,
} from "../../schemas/BrandedIds.ts"
import type { PolicyReviewState } from "../../schemas/identity/PolicyReview.ts"
import type { OpenedReview } from "../../schemas/identity/RequestBodies.ts"
import { Database } from "../platform/database/Database.ts"
import { fence, one } from "../platform/database/FencedCommand.ts"
import { insertion, type UnitOfWork, write } from "../platform/database/UnitOfWork.ts"
import { idIn } from "../platform/database/IdIn.ts"
import { Ids } from "../platform/Ids.ts"
import { addCall } from "./SignatureCalls.ts"
import type { RequestKind, RequestRow } from "./RequestRows.ts"

export type PolicyRole = "sponsor" | "administrator" | "operator"

export type ReviewKind = RequestKind | "enrollment_claim"

export interface PolicyReviewRow {
  readonly id: PolicyReviewId
  readonly request_id: RequestId
  readonly kind: ReviewKind
  readonly author: PersonId
  readonly institution_id: InstitutionId | null
  readonly project_id: ProjectId | null
  readonly required_roles: ReadonlyArray<PolicyRole>
  readonly state: PolicyReviewState
  readonly reason: string
  readonly created_at: Date
}

export interface Signature {
  readonly role: string
  readonly person_id: PersonId
  readonly approved_at: Date
}

/** A fully signed request, for the service that carries out its kind. */
export interface Decision {
  readonly request: RequestRow
  readonly review: PolicyReviewRow
  /** Ids of people, in the order in which they signed. */
  readonly approvedBy: ReadonlyArray<PersonId>
}

/** SQL of the columns of a `PolicyReviewRow`, of a review `v`. */
export const policyReviewColumns =
  `v.id::text as id, v.request_id::text as request_id, v.kind, v.author, v.institution_id, v.project_id,
  v.required_roles, v.state, v.reason, v.created_at`

/** A time as answers show it: RFC 3339, UTC, milliseconds. */
export const stamp = (date: Date): string => DateTime.formatIso(DateTime.fromDateUnsafe(date))

export type ReviewName = Pick<PolicyReviewRow, "id" | "required_roles">

/** The columns that `newestReview` joins to a request; null where it has no review. */
export interface NewestReview {
  readonly review_id: PolicyReviewId | null
  readonly required_roles: ReadonlyArray<PolicyRole>
  readonly review_state: PolicyReviewState
  readonly review_author: PersonId
}

export const reviewIn = ({ required_roles, review_id }: NewestReview): ReviewName | null =>
  review_id === null ? null : { id: review_id, required_roles }

export const openedOf = ({ id, required_roles }: ReviewName): OpenedReview => ({ review_id: id, required_roles })

/** The members that end the answer about any request. */
export const filedOf = (request: RequestRow, review: ReviewName | null) => ({
  version: request.revision,
  created_at: stamp(request.created_at),
  event_id: request.event_id,
  job_id: request.job_id,
  policy_review: review === null ? null : openedOf(review),
})

export class PolicyReviews extends Context.Service<PolicyReviews, {
  /** Opens the review of a request, in the current unit of work; `of` by default is the request itself. */
  readonly open: (
    request: RequestRow,
    roles: ReadonlyArray<PolicyRole>,
    of?: { readonly kind: ReviewKind; readonly author: PersonId; readonly reason: string },
  ) => Effect.Effect<PolicyReviewRow, SqlError.SqlError>
  /**
   * Closes the review of a request that no longer needs it, where it was open when it was loaded. Call it before the
   * request's own change: that fence is missed where a review was opened since.
   */
  readonly close: (review: NewestReview) => Effect.Effect<void, SqlError.SqlError, UnitOfWork>
  /** Closes the open reviews of requests that no longer need them. */
  readonly supersede: (...requestIds: ReadonlyArray<RequestId>) => Effect.Effect<void, SqlError.SqlError>
}>()("bailiwick/services/requests/PolicyReviews") {
  static readonly layer = Layer.effect(
    PolicyReviews,
    Effect.gen(function* () {
      const { sql } = yield* Database
      const ids = yield* Ids

      const reviews = insertion(sql, "policy_reviews", {
        id: "uuid",
        request_id: "uuid",
        kind: "text",
        author: "text",
        institution_id: "text",
        project_id: "text",
        required_roles: "text[]",
        state: "text",
        reason: "text",
        created_at: "timestamptz",
      })

      const open: PolicyReviews["Service"]["open"] = Effect.fnUntraced(function* (request, roles, of = request) {
        const row: PolicyReviewRow = {
          id: PolicyReviewId.make(yield* ids.next),
          request_id: request.id,
          kind: of.kind,
          author: of.author,
          institution_id: request.institution_id,
          project_id: request.project_id,
          required_roles: roles,
          state: "open",
          reason: of.reason,
          created_at: new Date(yield* Clock.currentTimeMillis),
        }
        yield* write(sql, reviews, [row])
        yield* addCall(sql, { review_id: row.id, kind: "policy" }, row.created_at)
        return row
      })

      const close = Effect.fnUntraced(function* ({ review_id, review_state }: NewestReview) {
        if (review_state !== "open") return
        const now = new Date(yield* Clock.currentTimeMillis)
        yield* fence(
          sql,
          one((earlier) =>
            sql`update policy_reviews set state = 'superseded', decided_at = ${now}
              where id = ${review_id}::uuid and state = 'open' and ${earlier} returning 1`
          ),
        )
      })

      const supersede = Effect.fnUntraced(function* (...requestIds: ReadonlyArray<RequestId>) {
        const now = new Date(yield* Clock.currentTimeMillis)
        yield* sql`
          update policy_reviews set state = 'superseded', decided_at = ${now}
          where ${idIn(sql, "request_id", "uuid", requestIds)} and state = 'open'`
      })

      return PolicyReviews.of({ open, close, supersede })
    }),
  )
}
