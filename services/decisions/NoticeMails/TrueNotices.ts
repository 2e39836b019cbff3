/** Which notices are true when they are told: some were made before it was known what would become of their subject. */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { PersonId } from "../../../schemas/BrandedIds.ts"
import { expiredReviews } from "../../access/WaitingReviews.ts"
import type { NoticeKind } from "../../requests/PersonNotices.ts"

export interface DueNotice {
  readonly person_id: PersonId
  readonly kind: NoticeKind
  readonly subject_id: string
}

export const trueNotices = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  notices: ReadonlyArray<DueNotice>,
  now: Date,
): Effect.fn.Return<ReadonlyArray<DueNotice>, SqlError.SqlError> {
  const expiries = notices.filter(({ kind }) => kind === "review.expired")
  const expired = yield* expiredReviews(sql, expiries.map(({ subject_id }) => subject_id), now)
  return notices.filter(({ kind, subject_id }) => kind !== "review.expired" || expired.has(subject_id))
})
