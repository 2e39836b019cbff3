/** An institution's invitations, newest first, each with its state at the time of the read. */
import { Clock, Effect } from "effect"
import type { InstitutionId, PersonId } from "../../../schemas/BrandedIds.ts"
import type { InstitutionEnrollments } from "../../../schemas/identity/Institution.ts"
import { institutionReader } from "../../people/InstitutionReader.ts"
import { Database } from "../../platform/database/Database.ts"
import { type NewestReview, reviewIn, stamp } from "../../requests/PolicyReviews.ts"
import { newestReview, type RequestRow, requestRows, stateAt } from "../../requests/RequestRows.ts"
import type { MailRow } from "../Requests/InvitationDelivery.ts"
import { viewOf } from "./Records.ts"

export interface EnrollmentPage {
  readonly personId: PersonId
  readonly institutionId: InstitutionId
  readonly limit: number
  /** The last invitation of the page before; null: from the newest on. */
  readonly afterId: string | null
}

interface Row extends RequestRow, NewestReview {
  readonly mail_state: MailRow["state"] | null
}

const newest = "ffffffff-ffff-ffff-ffff-ffffffffffff"

const listedOf = (row: Row, now: number): InstitutionEnrollments["items"][number] => ({
  ...viewOf(
    { ...row, state: stateAt(row, now) },
    reviewIn(row),
    row.mail_state === null ? null : { state: row.mail_state },
  ),
  author_person_id: row.author,
  decided_at: row.decided_at === null ? null : stamp(row.decided_at),
})

export const listingEnrollments = Effect.gen(function* () {
  const { reads } = yield* Database
  const mayRead = institutionReader(reads)
  const { columns } = requestRows(reads)

  return Effect.fn("Enrollments.list")(function* ({ afterId, institutionId, limit, personId }: EnrollmentPage) {
    yield* mayRead(personId, institutionId)
    const rows = yield* reads<Row>`
      select ${columns}, v.*, m.state as mail_state from (
        select id from requests
        where institution_id = ${institutionId} and kind = 'enrollment'
          and id < ${afterId ?? newest}::uuid
        order by id desc limit ${limit}
      ) page join requests r on r.id = page.id
      left join mails m on m.id = r.mail_id
      ${newestReview(reads)}
      order by r.id desc`
    const now = yield* Clock.currentTimeMillis
    return { items: rows.map((row) => listedOf(row, now)) }
  })
})
