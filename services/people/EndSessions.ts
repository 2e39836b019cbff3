/**
 * Ends sessions of a person on the word of an identity provider, in the caller's transaction, which has locked the
 * person. Sign-ins after the given time stay: the provider may tell of an old session late, and the person may have
 * signed in anew since.
 */
import { Clock, Effect } from "effect"
import type { PersonId } from "../../schemas/BrandedIds.ts"
import { Database } from "../platform/database/Database.ts"
import { Ids } from "../platform/Ids.ts"
import { keptMillis } from "./PeopleRetention.ts"

export const endingSessions = Effect.gen(function* () {
  const { sql } = yield* Database
  const namesOf = (personId: PersonId) => sql`(select id from people where ${personId}::text in (id, merged_into))`

  /** Ends all sessions of sign-ins up to `before`; returns how many of them were known. */
  const endAll = Effect.fn("EndSessions.endAll")(function* (personId: PersonId, before: Date) {
    const now = new Date(yield* Clock.currentTimeMillis)
    // No session has this exception's name. An earlier exception stays where its session is known to be of a later
    // sign-in than `before`.
    yield* sql`
      insert into session_floors as f (person_id, before, except_issuer, except_sid)
      values (${personId}, ${before}, '', '')
      on conflict (person_id) do update set before = greatest(f.before, excluded.before),
        (except_issuer, except_sid) = (
          select case when later then f.except_issuer else '' end, case when later then f.except_sid else '' end
          from (select exists (
            select from sessions s where s.issuer = f.except_issuer and s.sid = f.except_sid
              and coalesce(s.authenticated_at, s.issued_at) > excluded.before) as later) x)`
    const ended = yield* sql`
      update sessions set revoked_at = ${now}
      where person_id in ${namesOf(personId)} and revoked_at is null
        and last_seen_at > ${new Date(
      now.getTime() - keptMillis,
    )} and coalesce(authenticated_at, issued_at) <= ${before}
      returning 1`
    return ended.length
  })

  /**
   * Ends one session; returns whether it had not ended before. A session that was never seen here gets a row all the
   * same, so that its tokens are refused (`client_id` is empty: it is not listed). One of another person stays.
   */
  const endOne = Effect.fn("EndSessions.endOne")(function* (personId: PersonId, issuer: string, sid: string) {
    const now = new Date(yield* Clock.currentTimeMillis)
    const ended = yield* sql`
      insert into sessions as s (id, issuer, sid, person_id, client_id, issued_at, last_seen_at, expires_at, aal, amr,
        revoked_at)
      values (${yield* (yield* Ids).next}::uuid, ${issuer}, ${sid}, ${personId}, '', ${now}, ${now}, ${now}, 'unknown',
        '{}', ${now})
      on conflict (issuer, sid) do update set revoked_at = excluded.revoked_at
      where s.revoked_at is null and s.person_id in ${namesOf(personId)}
      returning 1`
    return ended.length > 0
  })

  return { endAll, endOne }
})
