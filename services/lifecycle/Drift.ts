/**
 * Finds drift: compares the state that each project's events come to with the tables of Access, owners, grants,
 * reviews, people and the project itself, in one snapshot of the database, since both change in the same transaction. A
 * difference is noted until it is gone; mending it is an operator's decision.
 *
 * Sessions, identities and keys are in the state only, so there is nothing to compare them with. A person's status is
 * compared in the projects where the person has Access; while a fan-out job has yet to append its events, that shows as
 * drift.
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { ProjectId } from "../../schemas/BrandedIds.ts"
import { Database } from "../platform/database/Database.ts"

const projectsAtOnce = 20
const restMillis = 6 * 60 * 60_000
/** Differences of one project that are noted at most. */
const mostNoted = 100

interface Found {
  readonly key: string
  readonly expected: string | null
  readonly observed: string | null
}

/** SQL of the state's key of a person's account. */
const keyOf = (sql: PgClient.PgClient, issuer: string, subject: string) =>
  sql.literal(`'person/' || replace(replace(${issuer}, '%', '%25'), ' ', '%20') || ' ' || ${subject}`)

/** SQL of what the tables say of a project, by the keys of its state. */
const expected = (sql: PgClient.PgClient, projectId: ProjectId) =>
  sql`
    select 'access/' || v.access_id as key, 'version ' || v.access_version || ' as ' || v.role as says
    from access a join access_versions v on v.access_id = a.id and v.access_version = a.access_version
    where v.project_id = ${projectId} and v.state = 'active' and not a.removed and a.state = 'active'
    union all
    select 'owner/' || o.person_id, 'active'
    from project_owners o join people p on p.id = o.person_id and p.issuer is not null
    join projects j on j.id = o.project_id and j.institution_id is not null
    where o.project_id = ${projectId} and o.active and not o.removed
    union all
    select 'service_grant/' || id, 'approved' from service_grants
    where project_id = ${projectId} and state = 'approved'
    union all
    select 'review/' || id, 'version ' || access_version from access_reviews
    where project_id = ${projectId} and (state = 'approved' or state = 'lapsed' and approved_at is not null)
    union all
    select 'project', 'there' from projects
    where id = ${projectId} and institution_id is not null and not removed and state <> 'withdrawn'`

/** SQL of what the state says, in the same words; without accounts. */
const observed = (sql: PgClient.PgClient, projectId: ProjectId) =>
  sql`
    select key, case split_part(key, '/', 1)
      when 'access' then 'version ' || (value ->> 'version') || ' as ' || (value ->> 'role')
      when 'owner' then 'active'
      when 'service_grant' then 'approved'
      when 'review' then 'version ' || (value ->> 'version')
      else 'there' end as says
    from lifecycle_state
    where project_id = ${projectId} and (split_part(key, '/', 1) in ('access', 'owner', 'service_grant', 'review')
      or key = 'project' and value ->> 'status' <> 'withdrawn')`

/** SQL of the accounts that the tables say are disabled or purged, of people who have Access. */
const barred = (sql: PgClient.PgClient, projectId: ProjectId) =>
  sql`
    select distinct ${keyOf(sql, "p.issuer", "p.subject")} as key, p.issuer as iss, p.subject as sub,
      case when p.removed then 'purged' else 'disabled' end as says
    from access a join people p on p.id = a.person_id
    where a.project_id = ${projectId} and a.state = 'active' and not a.removed and a.access_version > 0
      and p.issuer is not null and p.merged_into is null and (p.removed or p.status <> 'active')
      -- A removed person's identity that another person has now is judged by that person.
      and not (p.removed and exists (
        select from identities i where i.issuer = p.issuer and i.subject = p.subject and i.person_id <> p.id))`

/** SQL of all identities of the accounts of \`barred\`: an event about one of them holds for the others as well. */
const names = (sql: PgClient.PgClient, projectId: ProjectId) =>
  sql`
    select key, iss, sub from barred
    union
    select n.key, o.name ->> 'iss', o.name ->> 'sub' from names n
    join lifecycle_state l on l.project_id = ${projectId} and split_part(l.key, '/', 1) = 'identity'
      and l.value -> 'user' ->> 'iss' = n.iss and l.value -> 'user' ->> 'sub' = n.sub
    cross join lateral (values (l.value -> 'previous'), (l.value -> 'linked')) o(name)
    where o.name ->> 'iss' is not null`

/** SQL of the status that the state has of an account \`b\` of \`barred\`, by any of its identities. */
const statusOf = (sql: PgClient.PgClient, projectId: ProjectId) =>
  sql`
    select l.value ->> 'status' from names n
    join lifecycle_state l on l.project_id = ${projectId} and l.key = ${keyOf(sql, "n.iss", "n.sub")}
    where n.key = b.key order by l.value ->> 'status' = b.says desc limit 1`

/** SQL of the accounts that the state says are disabled, of people who are active and have Access. */
const freed = (sql: PgClient.PgClient, projectId: ProjectId) =>
  sql`
    select l.key, l.value ->> 'status' as says
    from lifecycle_state l
    join identities i on i.issuer = l.value -> 'user' ->> 'iss' and i.subject = l.value -> 'user' ->> 'sub'
    where l.project_id = ${projectId} and split_part(l.key, '/', 1) = 'person'
      and not exists (
        select from people n where (n.id = i.person_id or n.merged_into = i.person_id)
          and (n.removed or n.status <> 'active'))
      and exists (
        select from access a join people n on n.id = a.person_id
        where a.project_id = ${projectId} and (n.id = i.person_id or n.merged_into = i.person_id)
          and a.state = 'active' and not a.removed and a.access_version > 0)`

/** The differences of one project, the first of them by key. */
const compare = (sql: PgClient.PgClient, projectId: ProjectId) =>
  sql<Found>`
    with recursive expected as (${expected(sql, projectId)}), observed as (${observed(sql, projectId)}),
    barred as (${barred(sql, projectId)}), names as (${names(sql, projectId)}), freed as (${freed(sql, projectId)})
    select distinct on (key) key, expected, observed from (
      select f.key, null as expected, f.says as observed from freed f
      union all
      select coalesce(e.key, o.key) as key, e.says as expected, o.says as observed
      from expected e full join observed o on o.key = e.key
      union all
      select b.key, b.says, (${statusOf(sql, projectId)}) from barred b
    ) f
    where expected is distinct from observed order by key limit ${mostNoted}`

export class Drift extends Context.Service<Drift, {
  /** Compares some projects that were last compared six hours ago; returns whether there may be more of them. */
  readonly look: Effect.Effect<boolean, SqlError.SqlError>
}>()("bailiwick/services/lifecycle/Drift") {
  static readonly layer = Layer.effect(
    Drift,
    Effect.gen(function* () {
      const { sql, wide } = yield* Database

      const note = Effect.fnUntraced(function* (projectId: ProjectId, found: ReadonlyArray<Found>) {
        const now = new Date(yield* Clock.currentTimeMillis)
        yield* sql`
          delete from lifecycle_drift where project_id = ${projectId}
            and key <> all(${found.map(({ key }) => key)}::text[])`
        yield* sql`
          insert into lifecycle_drift (project_id, key, expected, observed, first_seen_at)
          select ${projectId}, key, expected, observed, ${now}
          from jsonb_to_recordset(${sql.json([...found])}) r(key text, expected text, observed text)
          on conflict (project_id, key) do update set expected = excluded.expected, observed = excluded.observed`
      }, sql.withTransaction)

      const look = Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        const before = new Date(now - restMillis)
        const due = yield* sql<{ project_id: ProjectId }>`
          insert into lifecycle_drift_looks as t (project_id, looked_at)
          select h.project_id, ${new Date(now)} from lifecycle_heads h
          left join lifecycle_drift_looks l on l.project_id = h.project_id
          where coalesce(l.looked_at < ${before}, true) order by l.looked_at nulls first limit ${projectsAtOnce}
          on conflict (project_id) do update set looked_at = excluded.looked_at where t.looked_at < ${before}
          returning project_id`
        for (const { project_id } of due) {
          const found = yield* compare(wide, project_id)
          yield* note(project_id, found)
          if (found.length > 0) yield* Effect.logWarning(`the state of project ${project_id} has drifted`)
        }
        return due.length === projectsAtOnce
      }).pipe(Effect.withSpan("Drift.look"))

      return Drift.of({ look })
    }),
  )
}
