/** One review and its signers, for a person whom a list of reviews shows it to; for any other person there is none. */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { PersonId, PolicyReviewId } from "../../../schemas/BrandedIds.ts"
import type { PolicyReviewDetail, PolicyReviewState } from "../../../schemas/identity/PolicyReview.ts"
import { NotFound } from "../../../schemas/problems/HttpProblems.ts"
import { isUuid } from "../../../schemas/Wire.ts"
import { eligibleSigners } from "./EligibleSigners.ts"
import { listing } from "./Listing.ts"
import { ownDecisions } from "./OwnDecisions.ts"

export const oneReview = (sql: PgClient.PgClient) => {
  const list = listing(sql)
  const decidedBy = ownDecisions(sql)
  const signersOf = eligibleSigners(sql)
  return Effect.fn("PolicyDecisions.one")(function* (
    personId: PersonId,
    reviewId: PolicyReviewId,
  ): Effect.fn.Return<PolicyReviewDetail, NotFound | SqlError.SqlError> {
    if (!isUuid(reviewId)) return yield* new NotFound()
    const [found] = yield* sql<{ state: PolicyReviewState }>`
      select state from policy_reviews where id = ${reviewId}::uuid`
    if (found === undefined) return yield* new NotFound()
    const page = { personId, only: [reviewId], afterId: null, limit: 1 }
    const [own] = (yield* decidedBy({ ...page, open: false })).items
    const [one] = own === undefined ? (yield* list({ ...page, state: found.state })).items : [own]
    if (one === undefined) return yield* new NotFound()
    return { ...one, signers: one.state === "open" ? yield* signersOf(personId, reviewId) : null }
  })
}
