/** Revokes a review: for its proposer, for an administrator, or during recovery. */
import { Clock, Effect } from "effect"
import type { AccessReviewId, PersonId } from "../../../schemas/BrandedIds.ts"
import { NotFound } from "../../../schemas/problems/HttpProblems.ts"
import { InvalidState } from "../../../schemas/problems/IdentityProblems.ts"
import { isUuid } from "../../../schemas/Wire.ts"
import { needs, standingFrom, standingIn } from "../../people/Roles.ts"
import { Database } from "../../platform/database/Database.ts"
import { answerTo, fence, load, one, unchanged } from "../../platform/database/FencedCommand.ts"
import { addNotices } from "../../requests/PersonNotices.ts"
import { mustBeSeen, type ReviewDecision } from "./ApproveReview.ts"
import { entriesOf, evidence, wholeChain } from "./Evidence.ts"
import { eventAppender, recording, recoveryActor } from "./Records.ts"
import { type LoadedRow, receiptOf, reviewColumns, reviewedPerson } from "./Rows.ts"

interface Loaded extends LoadedRow {
  readonly standing: string
}

const decide = Effect.fnUntraced(function* (loaded: Loaded, decision: ReviewDecision) {
  const { institutionId, personId } = decision
  const standing = yield* standingFrom(loaded.standing, personId, institutionId)
  if (loaded.id === null) return yield* new NotFound()
  const proposer = loaded.proposed_by === personId && loaded.state === "proposed" && standing.sponsor
  if (!proposer) yield* needs(standing, "administrator")
  yield* mustBeSeen(decision, loaded)
  if (loaded.state === "revoked") {
    return yield* new InvalidState({ state: loaded.state, allowed: ["proposed", "approved"] })
  }
})

export const revoking = Effect.gen(function* () {
  const { sql } = yield* Database
  const recorded = yield* recording
  const appendEvent = yield* eventAppender
  const chain = evidence(sql)
  const [columns, about] = [sql.literal(reviewColumns), sql.literal(reviewedPerson)]
  const entries = entriesOf(sql, sql`access_reviews.id`)

  /** Revokes the loaded review. */
  const close = Effect.fnUntraced(function* (row: LoadedRow, personId: PersonId, reason: string) {
    const before = yield* wholeChain(row)
    const entry = yield* chain.next(row, before, { action: "revoke", personId, reason })
    const eventId = yield* appendEvent("access-review-revoked", row)
    yield* fence(
      sql,
      one((earlier) =>
        sql`update access_reviews set state = 'revoked', revoked_by = ${personId}, revoked_at = ${entry.at},
          revocation_event_id = ${eventId}::uuid, evidence_digest = ${entry.digest}, evidence_count = ${entry.nth}
        where id = ${row.id}::uuid and evidence_digest = ${row.evidence_digest} and ${earlier} returning 1`
      ),
    )
    yield* chain.add(entry, row.id)
    if (personId !== row.proposed_by) {
      yield* addNotices(sql, { personId: row.proposed_by, kind: "review.revoked", subjectId: row.id })
    }
    const after = { ...row, state: "revoked" as const, evidence_digest: entry.digest }
    return receiptOf(after, [...before, entry], yield* recorded("revoke", row, personId))
  })

  const revoke = Effect.fn("AccessReviews.revoke")(function* (decision: ReviewDecision) {
    const { institutionId, personId, reason, reviewId } = decision
    const standing = standingIn(sql, personId, institutionId, new Date(yield* Clock.currentTimeMillis))
    const row = yield* load<Loaded>(
      sql,
      sql`
      select ${columns}, ${about}, ${entries} as entries, ${answerTo(sql, standing)} as standing
      from (select) always left join access_reviews
        on id = ${isUuid(reviewId) ? reviewId : null}::uuid and institution_id = ${institutionId}`,
    )
    yield* decide(row, decision)
    yield* fence(sql, unchanged(sql, standing, row.standing))
    return yield* close(row, personId, reason)
  })

  const end = Effect.fn("AccessReviews.end")(function* (reviewId: AccessReviewId, reason: string) {
    if (!isUuid(reviewId)) return false
    const row = yield* load<LoadedRow>(
      sql,
      sql`
      select ${columns}, ${about}, ${entries} as entries from access_reviews
      where id = ${reviewId}::uuid and state <> 'revoked'`,
    )
    if (row.id === null) return false
    yield* close(row, recoveryActor, reason)
    return true
  })

  return { revoke, end }
})
