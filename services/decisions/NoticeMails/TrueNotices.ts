/** Which notices are true when they are told: some were made before it was known what would become of their subject. */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { PersonId } from "../../../schemas/BrandedIds.ts"
import { expiredReviews, reviewsWaitingFor } from "../../access/WaitingReviews.ts"
import type { NoticeKind } from "../../requests/PersonNotices.ts"
import { listing } from "../PolicyDecisions/Listing.ts"

export interface DueNotice {
  readonly person_id: PersonId
  readonly kind: NoticeKind
  readonly subject_id: string
}

/** Reviews whose signers are told by one statement. */
const most = 1_000

/** Those of these reviews on which the person's signature would be accepted now, by the rules of the decisions. */
export const waitingFor = (sql: PgClient.PgClient) => {
  const list = listing(sql)
  return Effect.fnUntraced(function* (
    personId: PersonId,
    ids: ReadonlyArray<string>,
    now: Date,
  ): Effect.fn.Return<ReadonlySet<string>, SqlError.SqlError> {
    if (ids.length === 0) return new Set()
    const only = ids.slice(0, most)
    const { items } = yield* list({ personId, state: "open", afterId: null, limit: most, only })
    const reviews = yield* reviewsWaitingFor(sql, personId, only, now)
    return new Set([...items.map(({ review_id }) => review_id), ...reviews])
  })
}

export const isSignature = ({ kind }: Pick<DueNotice, "kind">) => kind.startsWith("signature.")

/** The true ones of the notices of a person. */
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
