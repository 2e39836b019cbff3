/**
 * A person's own requests, newest first, each with its state at the time of the read; and other persons' requests to
 * link an identity of this person, while it may object: the notice may not arrive, or there may be no address for it.
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { PersonId, PolicyReviewId } from "../../../schemas/BrandedIds.ts"
import type { MailDelivery, OwnRequest, OwnRequests } from "../../../schemas/identity/RequestBodies.ts"
import { filedOf, type PolicyReviewRow, stamp } from "../../requests/PolicyReviews.ts"
import { newestReview, type RequestRow, requestRows, stateAt } from "../../requests/RequestRows.ts"
import { masked } from "../../platform/mail/MailAddress.ts"
import { deliveryOf, type MailRow, recipientOf } from "./InvitationDelivery.ts"
import { endIn, membershipIn } from "./RequestViews.ts"

/** A request with the columns of `ownRequestJoins`, beside those of `newestReview`. */
export interface OwnRow extends RequestRow {
  readonly mail_state: MailRow["state"] | null
  readonly client_id: string | null
  readonly website_name: string | null
  readonly review_id: PolicyReviewId | null
  readonly required_roles: PolicyReviewRow["required_roles"]
}

export interface OwnPage {
  readonly limit: number
  /** The last of the page before. */
  readonly afterId: string | null
}

const newest: OwnPage = { limit: 100, afterId: null }

const stampOrNull = (date: Date | null) => date === null ? null : stamp(date)

const deliveryOfRow = (row: OwnRow): MailDelivery | null =>
  row.kind === "enrollment" ? deliveryOf(row, row.mail_state === null ? null : { state: row.mail_state }) : null

export const ownRequestOf = (row: OwnRow, now: number): OwnRequest => ({
  id: row.id,
  kind: row.kind,
  author_person_id: row.author,
  state: stateAt(row, now),
  institution_id: row.institution_id,
  project_id: row.project_id,
  name: row.kind === "organization" ? String(row.fields["name"]) : row.website_name,
  recipient: row.kind === "enrollment" ? masked(recipientOf(row)) : null,
  ends_at: row.kind === "access" ? endIn(row) : null,
  membership: row.kind === "membership" ? membershipIn(row) : null,
  reason: row.reason,
  expires_at: stampOrNull(row.expires_at),
  decided_at: stampOrNull(row.decided_at),
  withdrawn: row.withdrawn,
  effective_at: stampOrNull(row.effective_at),
  held_reason: row.held_reason,
  client_id: row.client_id,
  result_id: row.result_id,
  delivery: deliveryOfRow(row),
  ...filedOf(row, null),
  policy_review: row.review_id === null ? null : { review_id: row.review_id, required_roles: row.required_roles },
})

/** SQL of the columns that an own request shows beside its row's; `ownRequestJoins` joins them to a request `r`. */
export const ownRequestColumns = "m.state as mail_state, j.client_id, j.name as website_name"
export const ownRequestJoins = `left join mails m on m.id = r.mail_id
  left join projects j on j.id = r.project_id and r.kind = 'website'`

export const ownRequests = (reads: PgClient.PgClient) => {
  const { columns } = requestRows(reads)
  return Effect.fn("Requests.mine")(function* (
    personId: PersonId,
    { afterId, limit }: OwnPage = newest,
  ): Effect.fn.Return<OwnRequests, SqlError.SqlError> {
    const rows = yield* reads<OwnRow>`
      select ${columns}, v.review_id, v.required_roles, ${reads.literal(ownRequestColumns)}
      from (
        select own.id from (select id from people where id = ${personId} or merged_into = ${personId}) name
        cross join lateral (
          select id from requests
          where author = name.id and (${afterId}::uuid is null or id < ${afterId}::uuid) order by id desc limit ${limit}
        ) own
        union select id from requests
        where kind = 'link' and state = 'pending_review' and person_id = ${personId}
          and (${afterId}::uuid is null or id < ${afterId}::uuid)
        order by id desc limit ${limit}
      ) page join requests r on r.id = page.id
      ${reads.literal(ownRequestJoins)}
      ${newestReview(reads)}
      order by r.id desc`
    const now = yield* Clock.currentTimeMillis
    return { items: rows.map((row) => ownRequestOf(row, now)) }
  })
}
