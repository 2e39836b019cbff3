/**
 * What decisions about a person are recorded on: the person, Access and its reviews, what the person asked for, and what
 * others asked about the person once it is decided. A proposal that waits tells nothing: it may be about to take
 * something away, and its signers are not to be reached before. What the person asked about others is theirs.
 *
 * The directory may move an Access to another person. A review is of the person whom its version names; an Access itself,
 * whose records name no version, is told to neither then.
 *
 * A page of records looks at the newest `looked` subjects of a kind before its place, by when they began and by when they
 * last changed, so that its cost does not grow with what a person has. Each has a record of that moment: they fill a page.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { Statement } from "effect/sql"
import type { PersonId } from "../../schemas/BrandedIds.ts"
import { leastIdAt } from "../platform/Ids.ts"

/** Subjects of a kind and a merged name that a page looks at, in each of their two orders. A page has 100 records at most. */
const looked = 200
/** Access of a person, by its newest versions, in which a page looks for ends and confirmations. */
const lookedAccess = 1_000
/** By how much a moment may follow its record: clocks of the database and of processes differ. */
const slackMillis = 60_000

/** Those of a person's Access that had no other person, by the newest end, confirmation or revocation before `until`. */
const ownAccess = (sql: PgClient.PgClient, until: Statement.Fragment) =>
  sql`
    select held.access_id from (
      select distinct v.access_id from name cross join lateral (
        select access_id from access_versions where person_id = name.id and created_at <= ${until}
        order by created_at desc limit ${lookedAccess}) v
    ) held cross join lateral (
      select greatest(
        (select max(n.set_at) from access_ends n where n.access_id = held.access_id and n.set_at <= ${until}),
        (select max(c.confirmed_at) from access_confirmations c
         where c.access_id = held.access_id and c.confirmed_at <= ${until}),
        (select max(v.created_at) from access_versions v
         where v.access_id = held.access_id and v.state = 'revoked' and v.created_at <= ${until})) as at
    ) newest
    where newest.at is not null and not exists (
      select from access_versions v where v.access_id = held.access_id and v.person_id not in (select id from name))
    order by newest.at desc limit ${looked}`

/** Reviews of the versions that name the person. */
const ownReviews = (sql: PgClient.PgClient, until: Statement.Fragment) => {
  const newest = (moment: string) =>
    sql`
      select v.id from name cross join lateral (
        select id from access_reviews
        where person_id = name.id and state <> 'proposed' and ${sql.literal(moment)} <= ${until}
        order by ${sql.literal(moment)} desc limit ${looked}) v`
  return sql`${newest("proposed_at")} union ${newest("greatest(approved_at, revoked_at, lapsed_at)")}`
}

/** What the person asked for, and what was asked about the person; a link of two names is about the one who asks. */
const ownRequests = (sql: PgClient.PgClient, until: Statement.Fragment, begun: Statement.Fragment) => {
  const newest = (which: Statement.Fragment, order: "id" | "decided_at") =>
    sql`
      select r.id from name cross join lateral (
        select id from requests where ${which} and ${order === "id" ? begun : sql`decided_at <= ${until}`}
        order by ${sql.literal(order)} desc limit ${looked}) r`
  const asked = sql`author = name.id and (person_id is null or kind = 'link')`
  const about = sql`person_id = name.id`
  const told = sql`${about} and (decided_at is not null or author in (select id from name))`
  return sql`
    ${newest(asked, "id")} union ${newest(asked, "decided_at")}
    union ${newest(told, "id")} union ${newest(about, "decided_at")}`
}

/**
 * Subjects of audit records (`access-review:<id>`), also those of people who were merged into this one, that may have
 * records before this millisecond; null: the newest.
 */
export const decidedAbout = (sql: PgClient.PgClient, personId: PersonId, beforeMillis: number | null) => {
  const millis = beforeMillis === null ? null : beforeMillis + slackMillis
  const until = millis === null ? sql`'infinity'::timestamptz` : sql`${new Date(millis)}::timestamptz`
  const begun = millis === null ? sql`true` : sql`id < ${leastIdAt(millis)}::uuid`
  return Effect.map(
    sql<{ subject: string }>`
      with name as materialized (
        select ${personId}::text as id union select id from people where merged_into = ${personId}
      ), held as (${ownAccess(sql, until)}), reviewed as (${ownReviews(sql, until)}),
      asked as materialized (${ownRequests(sql, until, begun)})
      select 'person:' || id as subject from name
      union all select 'access:' || access_id from held
      union all select 'access-review:' || id from reviewed
      union all select 'request:' || id from asked
      union all select 'policy-review:' || v.id from asked join policy_reviews v on v.request_id = asked.id`,
    (rows) => rows.map(({ subject }) => subject),
  )
}
