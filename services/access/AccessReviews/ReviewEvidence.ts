/**
 * The evidence of one review, for those who decide on reviews and for an audit of them. A chain that does not hold is shown
 * as such: no decision may build on it, and an auditor has to see it.
 */
import { Effect } from "effect"
import type { AccessReviewId, InstitutionId, PersonId } from "../../../schemas/BrandedIds.ts"
import type { GrantEvidence } from "../../../schemas/identity/AccessReview.ts"
import { NotFound } from "../../../schemas/problems/HttpProblems.ts"
import { isUuid } from "../../../schemas/Wire.ts"
import { reviewsReader } from "../../people/InstitutionReader.ts"
import { Database } from "../../platform/database/Database.ts"
import { entriesIn, entriesOf, isWhole } from "./Evidence.ts"
import { identityOf, reviewColumns, type ReviewRow } from "./Rows.ts"

type Row = ReviewRow & { readonly entries: string }

/** A review with its entries, and whether they are an unbroken chain. */
export const viewOfEvidence = (row: Row): GrantEvidence => {
  const entries = entriesIn(row.entries)
  return {
    review_id: row.id,
    project_id: row.project_id,
    person_id: row.person_id,
    state: row.state,
    ...identityOf(row),
    sponsor_reason: row.sponsor_reason,
    whole: isWhole(row, entries),
    entries: entries.map(({ at, ...entry }) => ({ ...entry, at: at.toISOString() })),
  }
}

/** Makes `AccessReviews.evidence`. */
export const readingEvidence = Effect.gen(function* () {
  const { sql } = yield* Database
  const mayRead = reviewsReader(sql)
  const entries = entriesOf(sql, sql`access_reviews.id`)

  return Effect.fn("AccessReviews.evidence")(
    function* (personId: PersonId, institutionId: InstitutionId, reviewId: AccessReviewId) {
      yield* mayRead(personId, institutionId)
      const [row] = isUuid(reviewId)
        ? yield* sql<Row>`
          select ${sql.literal(reviewColumns)}, ${entries} as entries from access_reviews
          where id = ${reviewId}::uuid and institution_id = ${institutionId}`
        : []
      return row === undefined ? yield* new NotFound() : viewOfEvidence(row)
    },
  )
})
