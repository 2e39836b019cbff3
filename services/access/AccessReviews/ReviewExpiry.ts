/**
 * The expiry of reviews. It is judged when a review is read; the row of an expired review changes only when a new
 * proposal replaces it (`lapsed`), so no sweep is needed.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { AccessReviewId } from "../../../schemas/BrandedIds.ts"
import { ReviewExists } from "../../../schemas/problems/IdentityProblems.ts"
import { one } from "../../platform/database/FencedCommand.ts"
import type { ReviewRow } from "./Rows.ts"

const day = 86_400_000

/** How long a proposal, and an approval, is valid. */
const proposalMillis = 7 * day
const approvalMillis = 365 * day

/** How long after its last review an Access is due for the next one: as long as an approval is valid. */
export const reviewPeriodMillis = approvalMillis

type Dated = Pick<ReviewRow, "proposed_at" | "approved_at">

/** The time at which the review expires. */
export const endOf = ({ approved_at, proposed_at }: Dated): number =>
  approved_at === null ? proposed_at.getTime() + proposalMillis : approved_at.getTime() + approvalMillis

export const isExpired = (row: Dated, now: number): boolean => endOf(row) <= now

/** SQL of `isExpired`, of the columns of a row. */
export const expiredAt = (sql: PgClient.PgClient, now: Date) =>
  sql`coalesce(approved_at > ${new Date(now.getTime() - approvalMillis)},
    proposed_at > ${new Date(now.getTime() - proposalMillis)}) is false`

/** SQL of whether a review was proposed or approved at a moment, of its columns; at most one of an Access version was. */
export const effectiveReviewAt = (sql: PgClient.PgClient, at: Date) =>
  sql`(proposed_at <= ${at} and (revoked_at > ${at}) is not false
    and case when approved_at <= ${at} then approved_at > ${new Date(at.getTime() - approvalMillis)}
      else proposed_at > ${new Date(at.getTime() - proposalMillis)} end)`

/**
 * The proposed or approved review of an Access version, of which there is at most one; all null where there is none.
 */
export interface Holder extends Dated {
  readonly id: AccessReviewId | null
  readonly state: "proposed" | "approved"
  readonly evidence_digest: string
}

/** The id of the expired review that a new one replaces, null where there is none; fails where a review is in force. */
export const replacedReview = Effect.fnUntraced(function* (holder: Holder, now: Date) {
  const { id, state } = holder
  if (id === null || isExpired(holder, now.getTime())) return id
  const until = new Date(endOf(holder)).toISOString()
  return yield* new ReviewExists({
    detail:
      `Review ${id} of this Access version is ${state} until ${until}. Another one can be proposed from then on, or ` +
      "once that one is revoked.",
  })
})

/** A fence that marks the expired review as lapsed. It waits for a concurrent approval, which then keeps the review. */
export const lapses = (sql: PgClient.PgClient, { evidence_digest, id }: Holder, now: Date) =>
  one((earlier) =>
    sql`update access_reviews set state = 'lapsed', lapsed_at = ${now}
      where id = ${id}::uuid and evidence_digest = ${evidence_digest} and state in ('proposed', 'approved')
        and ${expiredAt(sql, now)} and ${earlier}
      returning 1`
  )
