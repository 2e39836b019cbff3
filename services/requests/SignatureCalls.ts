/**
 * Calls of a review's signers, or of those who answer in a campaign: a row that is written with the review, and holds the time at which the program next looks
 * for people who may sign it (services/decisions/NoticeMails/CallSigners.ts). It is deleted when the review has ended.
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { AccessReviewId, CampaignId, PolicyReviewId, ServiceGrantId } from "../../schemas/BrandedIds.ts"
import { Database } from "../platform/database/Database.ts"
import { insertion, write } from "../platform/database/UnitOfWork.ts"

export interface SignatureCall {
  readonly review_id: PolicyReviewId | AccessReviewId | ServiceGrantId | CampaignId
  readonly kind: "policy" | "access" | "service" | "campaign"
}

/** Adds the call of a new review, due at once, in the current unit of work. */
export const addCall = (
  sql: PgClient.PgClient,
  call: SignatureCall,
  now: Date,
): Effect.Effect<void, SqlError.SqlError> =>
  write(sql, insertion(sql, "signature_calls", { review_id: "uuid", kind: "text", due_at: "timestamptz" }), [
    { ...call, due_at: now },
  ])

/** Makes the call of a review due at once, in the current unit of work; adds it where it is missing. */
export const recall = (
  sql: PgClient.PgClient,
  { kind, review_id }: SignatureCall,
  now: Date,
): Effect.Effect<unknown, SqlError.SqlError> =>
  sql`insert into signature_calls (review_id, kind, due_at) values (${review_id}::uuid, ${kind}, ${now})
    on conflict (review_id) do update set due_at = excluded.due_at`

/**
 * Adds the missing calls and notices of expiry of waiting reviews: a program of an older version, which may run beside
 * this one, opens reviews without them. Any number of processes may run it.
 */
export const addMissingCalls = Effect.gen(function* () {
  const { sql } = yield* Database
  const now = new Date(yield* Clock.currentTimeMillis)
  yield* sql`
    insert into signature_calls (review_id, kind, due_at)
    select v.id, 'policy', ${now} from policy_reviews v join requests r on r.id = v.request_id
    where v.state = 'open' and coalesce(r.expires_at > ${now}, true)
      and not exists (select from signature_calls c where c.review_id = v.id)
    union all
    select v.id, 'access', ${now} from access_reviews v
    where v.state = 'proposed' and v.proposed_at + interval '7 days' > ${now}
      and not exists (select from signature_calls c where c.review_id = v.id)
    union all
    select g.id, 'service', ${now} from service_grants g
    where g.state = 'proposed' and coalesce(g.expires_at > ${now}, true)
      and not exists (select from signature_calls c where c.review_id = g.id)
    order by 1 on conflict do nothing`
  yield* sql`
    insert into person_notices (person_id, kind, subject_id, created_at, due_at)
    select proposed_by, 'review.expired', id, ${now}, proposed_at + interval '7 days' from access_reviews
    where state = 'proposed' and proposed_at + interval '7 days' > ${now}
    order by 1, 3 on conflict do nothing`
})
