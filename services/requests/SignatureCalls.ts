/**
 * Calls to those who may sign a review: a row that is written with the review, and says when the program looks next for
 * people to tell (services/decisions/NoticeMails/CallSigners.ts). It goes when the review is over.
 */
import type { PgClient } from "@effect/sql-pg"
import type { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { AccessReviewId, PolicyReviewId } from "../../schemas/BrandedIds.ts"
import { insertion, write } from "../platform/database/UnitOfWork.ts"

export interface SignatureCall {
  readonly review_id: PolicyReviewId | AccessReviewId
  readonly kind: "policy" | "access"
}

/** Adds the call of a new review, due at once, in the current unit of work. */
export const addCall = (
  sql: PgClient.PgClient,
  call: SignatureCall,
  now: Date,
): Effect.Effect<void, SqlError.SqlError> =>
  write(sql, insertion(sql, "signature_calls", { review_id: "uuid", kind: "text", due_at: "timestamptz" }), [
    { ...call, due_at: now },
  ])
