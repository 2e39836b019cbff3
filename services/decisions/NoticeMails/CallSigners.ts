/**
 * Adds notices for the people who may have to sign a review, every holder of one of its roles and every possible
 * stand-in, or to answer in a campaign: owners of its projects, and delegates. TrueNotices.ts judges, when a notice is
 * told, whether the person's signature or answer would count. The signers of a waiting review are called again, since
 * people and roles change, and once more before it expires.
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { SignatureCall } from "../../requests/SignatureCalls.ts"

const hour = 3_600_000
const day = 24 * hour

/** How long before its expiry a review's signers are told again. */
export const closingMillis = 2 * day

interface Review {
  readonly institution_id: string | null
  readonly required_roles: ReadonlyArray<string>
  readonly created_at: Date
  readonly expires_at: Date | null
}

export const callingSigners = (sql: PgClient.PgClient) => {
  /** The review, or service grant, that waits; no row where it has ended. */
  const waiting = ({ kind, review_id }: SignatureCall, now: Date) =>
    ({
      policy: () =>
        sql<Review>`
          select v.institution_id, v.required_roles, v.created_at, r.expires_at
          from policy_reviews v join requests r on r.id = v.request_id
          where v.id = ${review_id}::uuid and v.state = 'open' and coalesce(r.expires_at > ${now}, true)`,
      access: () =>
        sql<Review>`
          select institution_id, array['administrator'] as required_roles, proposed_at as created_at,
            proposed_at + interval '7 days' as expires_at
          from access_reviews
          where id = ${review_id}::uuid and state = 'proposed' and proposed_at + interval '7 days' > ${now}`,
      // The end of a grant is no term for its approval, so its approvers are told once.
      service: () =>
        sql<Review>`
          select p.institution_id, array['administrator'] as required_roles, g.proposed_at as created_at,
            null::timestamptz as expires_at
          from service_grants g join projects p on p.id = g.project_id and not p.removed and p.state <> 'withdrawn'
          where g.id = ${review_id}::uuid and g.state = 'proposed' and coalesce(g.expires_at > ${now}, true)`,
      campaign: () =>
        sql<Review>`
          select institution_id, '{}'::text[] as required_roles, opened_at as created_at, deadline as expires_at
          from campaigns where id = ${review_id}::uuid and closed_at is null and deadline > ${now}`,
    })[kind]()

  /** SQL of the ids of the people who are told. */
  const people = ({ kind, review_id }: SignatureCall, { institution_id, required_roles }: Review) => {
    if (kind === "campaign") {
      return sql`
        select o.person_id as id from campaign_items t join project_owners o on o.project_id = t.project_id and o.active
          and not o.removed
        where t.campaign_id = ${review_id}::uuid and t.outcome = 'open'
        union select delegate from campaign_items
        where campaign_id = ${review_id}::uuid and outcome = 'open' and delegate is not null`
    }
    const standIn = kind === "policy" && required_roles.some((role) => role !== "sponsor")
    return sql`
      select person_id as id from institution_memberships
      where institution_id = ${institution_id} and role = any(${[...required_roles]}::text[]) and state = 'active'
        and not removed
      union select id from people where operator and not auditor and not removed and ${standIn}`
  }

  /** When the call is due again: after an hour at first, at most a day later, and when the review is about to expire. */
  const nextOf = ({ created_at, expires_at }: Review, now: number) => {
    const later = now + Math.min(day, Math.max(hour, (now - created_at.getTime()) / 4))
    const closing = expires_at === null ? 0 : expires_at.getTime() - closingMillis
    return new Date(closing > now ? Math.min(later, closing) : later)
  }

  return Effect.fn("NoticeMails.call")(function* (
    call: SignatureCall,
  ): Effect.fn.Return<void, SqlError.SqlError> {
    const now = new Date(yield* Clock.currentTimeMillis)
    // Claims the call for a minute: no other process takes it, and a call that fails does not block the next ones.
    const claimed = new Date(now.getTime() + 60_000)
    const taken = yield* sql`
      update signature_calls set due_at = ${claimed}
      where review_id = ${call.review_id}::uuid and due_at <= ${now} returning 1`
    if (taken.length === 0) return
    // A campaign whose deadline moves meanwhile makes its call due anew: what was read before counts no more.
    const held = sql`review_id = ${call.review_id}::uuid and due_at = ${claimed}`
    const [review] = yield* waiting(call, now)
    if (review === undefined) {
      yield* sql`delete from signature_calls where ${held}`
      return
    }
    const { expires_at } = review
    const closes = expires_at !== null && expires_at.getTime() - closingMillis <= now.getTime()
    const kinds = closes ? ["signature.waiting", "signature.closing"] : ["signature.waiting"]
    yield* sql`
      with held as materialized (select from signature_calls where ${held} for update)
      insert into person_notices (person_id, kind, subject_id, created_at, due_at)
      select p.id, k.kind, ${call.review_id}::uuid, ${now}, ${now}
      from held cross join (${people(call, review)}) p cross join unnest(${kinds}::text[]) k(kind)
      order by p.id, k.kind on conflict do nothing`
    yield* sql`update signature_calls set due_at = ${nextOf(review, now.getTime())} where ${held}`
  })
}
