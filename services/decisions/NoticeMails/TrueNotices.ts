/** Selects the notices that are true when they are told: some were made before the outcome of their subject was known. */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { PersonId } from "../../../schemas/BrandedIds.ts"
import { expiredReviews, grantsWaitingFor, reviewsWaitingFor } from "../../access/WaitingReviews.ts"
import type { NoticeKind } from "../../requests/PersonNotices.ts"
import { waitingItems } from "../Campaigns/WaitingItems.ts"
import { listing } from "../PolicyDecisions/Listing.ts"

export interface DueNotice {
  readonly person_id: PersonId
  readonly kind: NoticeKind
  readonly subject_id: string
}

/** Maximum number of reviews that one statement reads. */
const most = 1_000

/**
 * Selects the reviews and service grants that the person could sign now, and the campaigns in which an item waits for the
 * person, by the rules of the decisions.
 */
export const waitingFor = (sql: PgClient.PgClient) => {
  const list = listing(sql)
  const { among } = waitingItems(sql)
  return Effect.fnUntraced(function* (
    personId: PersonId,
    ids: ReadonlyArray<string>,
    now: Date,
  ): Effect.fn.Return<ReadonlySet<string>, SqlError.SqlError> {
    const found = new Set<string>()
    for (let at = 0; at < ids.length; at += most) {
      const only = ids.slice(at, at + most)
      const { items } = yield* list({ personId, state: "open", afterId: null, limit: most, only })
      for (const { review_id } of items) found.add(review_id)
      for (const id of yield* reviewsWaitingFor(sql, personId, only, now)) found.add(id)
      for (const id of yield* grantsWaitingFor(sql, personId, only, now)) found.add(id)
      for (const id of yield* among(personId, only, now)) found.add(id)
    }
    return found
  })
}

export const isSignature = ({ kind }: Pick<DueNotice, "kind">) => kind.startsWith("signature.")

/** Selects the person's notices that are true now. */
export const trueNotices = (sql: PgClient.PgClient) => {
  const waits = waitingFor(sql)
  return Effect.fnUntraced(function* (
    personId: PersonId,
    notices: ReadonlyArray<DueNotice>,
    now: Date,
  ): Effect.fn.Return<ReadonlyArray<DueNotice>, SqlError.SqlError> {
    const idsOf = (those: ReadonlyArray<DueNotice>) => [...new Set(those.map(({ subject_id }) => subject_id))]
    const expired = yield* expiredReviews(sql, idsOf(notices.filter(({ kind }) => kind === "review.expired")), now)
    const waiting = yield* waits(personId, idsOf(notices.filter(isSignature)), now)
    return notices.filter((notice) => {
      if (notice.kind === "review.expired") return expired.has(notice.subject_id)
      return !isSignature(notice) || waiting.has(notice.subject_id)
    })
  })
}
