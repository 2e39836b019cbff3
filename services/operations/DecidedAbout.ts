/**
 * What decisions about a person are recorded on: the person, Access and its reviews, what the person asked for, and what
 * others asked about the person once it is decided. A proposal that waits tells nothing: it may be about to take
 * something away, and whoever signs it is not to be reached before.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { PersonId } from "../../schemas/BrandedIds.ts"

/** Subjects of audit records (`access-review:<id>`), also those of people who were merged into this one. */
export const decidedAbout = (sql: PgClient.PgClient, personId: PersonId) =>
  Effect.map(
    sql<{ subject: string }>`
      with name as materialized (
        select ${personId}::text as id union select id from people where merged_into = ${personId}
      ), held as materialized (
        select a.id as access_id from name join access a on a.person_id = name.id
      ), asked as materialized (
        select r.id from name join requests r on r.author = name.id
        union select r.id from name join requests r on r.person_id = name.id where r.decided_at is not null
      )
      select 'person:' || id as subject from name
      union all select 'access:' || access_id from held
      union all select 'access-review:' || v.id from held join access_reviews v on v.access_id = held.access_id
        where v.state <> 'proposed'
      union all select 'request:' || id from asked
      union all select 'policy-review:' || v.id from asked join policy_reviews v on v.request_id = asked.id`,
    (rows) => rows.map(({ subject }) => subject),
  )
