/**
 * The list of an institution's reviews. Each shows the decision, its delivery, the product's acknowledgement and the
 * effective access side by side, and none of these is inferred from another. Validity is judged at the time of the
 * read; no row is rewritten when a review grows old. A whole list whose rows have not changed is taken from memory
 * (Seen.ts); a page is read anew.
 */
import { Clock, Effect } from "effect"
import type { AccessReviewId, InstitutionId, PersonId, ProjectId } from "../../../schemas/BrandedIds.ts"
import { NotFound } from "../../../schemas/problems/HttpProblems.ts"
import { AuditorReadsOnly } from "../../../schemas/problems/IdentityProblems.ts"
import type { Candidate, Review, ValidityReason } from "../../../schemas/identity/AccessReview.ts"
import { isUuid } from "../../../schemas/Wire.ts"
import {
  acknowledgementOf,
  deliveriesAmong,
  deliveryOf,
  type DeliveryRow,
  type Stood,
} from "../../lifecycle/DeliveryStatus.ts"
import { reviewsReader } from "../../people/InstitutionReader.ts"
import { lacking } from "../../people/Roles.ts"
import { Database } from "../../platform/database/Database.ts"
import { counted } from "../../platform/MapSizes.ts"
import { type Beside, type CandidateRow, type ListedRow, listedRows, type ReviewPage } from "./ListedRows.ts"
import { endOf, isExpired } from "./ReviewExpiry.ts"
import { identityOf } from "./Rows.ts"
import { Lists, seenOf, written, writtenAt } from "./Seen.ts"

const reasonsOf = (row: ListedRow, now: number): ReadonlyArray<ValidityReason> => {
  const reasons: Array<ValidityReason> = []
  if (row.access_state !== "active") reasons.push("access_not_active")
  if (row.current_version !== row.access_version) reasons.push("access_version_superseded")
  if (!row.sponsor_current) reasons.push("sponsor_not_current")
  if (row.membership_ended) reasons.push("membership_ended")
  if (isExpired(row, now)) reasons.push("review_expired")
  if (row.state === "revoked") reasons.push("review_revoked")
  return reasons
}

const stood = (project: ProjectId | null, epoch: number | null, position: bigint | null): Stood | null =>
  project === null || epoch === null || position === null
    ? null
    : { project_id: project, epoch, position: Number(position) }

const viewOf = (row: ListedRow, among: ReturnType<typeof deliveriesAmong>, now: number): Review => {
  const { acknowledged, attempted, delivered } = among
  const reasons = reasonsOf(row, now)
  const proposedAt = row.proposed_at.toISOString()
  // Member by member: the spread of another object costs more than all the rest of a view.
  const { access, evidence_digest, grant_event, institution_id, sponsor_decision } = identityOf(row, proposedAt)
  const event = stood(row.queued_in, row.queued_epoch, row.queued_position)
  const grant = stood(row.granted_in, row.granted_epoch, row.granted_position)
  const done = event === null ? undefined : acknowledged(event)
  const delivery: DeliveryRow = {
    queued_event_id: row.queued_event_id,
    queued_at: row.queued_at,
    delivered_at: event === null ? null : delivered(event),
    attempted: event === null ? null : attempted(event),
    acknowledged_at: done?.at ?? null,
    acknowledged_epoch: done?.epoch ?? null,
    acknowledged_position: done === undefined ? null : BigInt(done.position),
    acknowledged_version: done?.installedVersion ?? null,
  }
  // Only the product can tell the effective access: it does by acknowledging the Access's current version.
  const observed = (grant === null ? undefined : acknowledged(grant))?.at ?? null
  return {
    review_id: row.id,
    project_id: row.project_id,
    person_id: row.person_id,
    institution_id,
    access,
    sponsor_decision,
    grant_event,
    evidence_digest,
    state: row.state,
    proposed_at: proposedAt,
    sponsor_reason: row.sponsor_reason,
    decision: { state: row.state, at: (row.revoked_at ?? row.approved_at)?.toISOString() ?? proposedAt },
    delivery: deliveryOf(delivery),
    acknowledgement: acknowledgementOf(delivery, row.installed_version),
    effective_access: {
      state: observed === null ? "unknown" : row.access_state === "active" ? "effective" : "not_effective",
      observed_at: observed?.toISOString() ?? null,
      drift: row.drift,
    },
    validity: { current: reasons.length === 0, reasons },
  }
}

type Refusal = { readonly code: string } | null

/** `refusal`: the problem with which a proposal by the caller would be refused. */
const candidateOf = (row: CandidateRow, refusal: Refusal): Candidate => ({
  ...row,
  granted_at: new Date(row.granted_at).toISOString(),
  proposable: refusal === null,
  blocked_by: refusal === null ? [] : [refusal.code],
})

const hour = 3_600_000

/** The time until which no review of the list expires; an hour at most. */
const untilOf = (rows: ReadonlyArray<ListedRow>, now: number): number =>
  rows.reduce((least, row) => {
    const end = endOf(row)
    return end > now && end < least ? end : least
  }, now + hour)

/** Bytes of lists that are kept in memory; a list of a thousand reviews has 1.4 MB. */
const mostBytes = 16 * 1_024 * 1_024

const justOne = { limit: 1, afterId: null, afterAccessId: null }

/** Makes `AccessReviews.list` and `AccessReviews.one`. */
export const listing = Effect.gen(function* () {
  const { sql } = yield* Database
  const mayRead = reviewsReader(sql)
  const lists = new Lists(mostBytes)
  yield* counted("lists of reviews", () => lists.size)

  const viewed = Effect.fnUntraced(function* (institutionId: InstitutionId, now: number, page: ReviewPage | null) {
    const found = yield* listedRows(sql, institutionId, new Date(now), page)
    const beside = found.find(({ beside }) => beside !== null)!.beside!
    const { attempted, candidates, consumers, given, seen }: Beside = JSON.parse(beside)
    const deliveries = deliveriesAmong(consumers, given, attempted)
    const listed = found.filter((row) => row.beside === null)
    return { seen, listed, candidates, reviews: listed.map((row) => viewOf(row, deliveries, now)) }
  })

  const read = Effect.fnUntraced(
    function* (institutionId: InstitutionId, refusal: Refusal, now: number, page: ReviewPage | null) {
      const { candidates, listed, reviews, seen } = yield* viewed(institutionId, now, page)
      return {
        seen,
        from: now,
        until: untilOf(listed, now),
        ...written(institutionId, { reviews, candidates: candidates.map((row) => candidateOf(row, refusal)) }),
      }
    },
  )

  const one = Effect.fn("AccessReviews.one")(
    function* (personId: PersonId, institutionId: InstitutionId, reviewId: AccessReviewId) {
      yield* mayRead(personId, institutionId)
      const now = yield* Clock.currentTimeMillis
      const { reviews: [found] } = isUuid(reviewId)
        ? yield* viewed(institutionId, now, { ...justOne, only: reviewId })
        : { reviews: [] }
      return found ?? (yield* new NotFound())
    },
  )

  const list = Effect.fn("AccessReviews.list")(
    function* (personId: PersonId, institutionId: InstitutionId, page: ReviewPage | null = null) {
      const standing = yield* mayRead(personId, institutionId)
      const refusal = standing === null ? new AuditorReadsOnly() : lacking(standing, "sponsor")
      const now = yield* Clock.currentTimeMillis
      if (page !== null) return writtenAt(yield* read(institutionId, refusal, now, page), now)
      const key = `${refusal?.code ?? ""} ${institutionId}`
      const last = lists.get(key)
      if (last !== undefined && last.from <= now && now < last.until) {
        const [found] = yield* sql<{ seen: string }>`${seenOf(sql, institutionId, new Date(now))}`
        if (found!.seen === last.seen) return writtenAt(last, now)
      }
      const list = yield* read(institutionId, refusal, now, null)
      lists.set(key, list)
      return writtenAt(list, now)
    },
  )

  return { list, one }
})
