/**
 * The items of a pack of evidence, a page of one section at a time in ascending order of their ids. Each item names the
 * objects whose decisions belong to it. All tables that are read here keep what was decided.
 *
 * A page looks at `looked` objects of its section at most, since a span of time may have none of an institution's: it ends
 * early, and the next page begins after the last object that it looked at.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { SqlError, Statement } from "effect/sql"
import type { AccessId, AccessReviewId, InstitutionId, PersonId } from "../../../schemas/BrandedIds.ts"
import type { PackSection } from "../../../schemas/identity/EvidencePack.ts"
import { setIn } from "../AccessEndRows.ts"
import { viewOfEvidence } from "../AccessReviews/ReviewEvidence.ts"
import { entriesOf } from "../AccessReviews/Evidence.ts"
import { reviewColumns, type ReviewRow } from "../AccessReviews/Rows.ts"

/** What a pack tells of. */
export interface PackFilter {
  readonly institutionId: InstitutionId
  readonly personId: PersonId | null
  readonly review: { readonly id: AccessReviewId; readonly access_id: AccessId } | null
  readonly since: Date | null
  readonly until: Date
}

export interface PackItem {
  readonly id: string
  /** The item's line. */
  readonly line: object
  /** Its objects as the audit names them: `access-review:<id>`. */
  readonly subjects: ReadonlyArray<string>
}

export interface PackPage {
  readonly items: ReadonlyArray<PackItem>
  /** The last object that was looked at; null where the section has no more. */
  readonly end: string | null
}

type Page = (filter: PackFilter, afterId: string, limit: number) => Effect.Effect<PackPage, SqlError.SqlError>

/** Objects of a section that one page looks at. */
export const looked = 2_000

/** What a statement of `bounded` returns: without any item one row, whose other columns are null. */
interface Bounded {
  readonly end: string | null
  readonly id: string | null
}

/**
 * SQL of a page with its `end`. `page`: the items, of the first `looked` rows of `seen`; `seen`: the ids of the section's
 * objects after the page before, in their order. Both see the same snapshot.
 */
const bounded = <Row extends { readonly id: string }>(
  sql: PgClient.PgClient,
  { limit, order, page, seen }: {
    readonly limit: number
    /** Of the items. */
    readonly order: string
    readonly page: Statement.Fragment
    readonly seen: Statement.Fragment
  },
) =>
  Effect.map(
    sql<Bounded & Omit<Row, "id">>`
      with page as materialized (${page}), edge as (
        select case when (select count(*) from page) < ${limit}
          then (select id::text from (${seen}) s offset ${looked - 1} limit 1) end as "end"
      )
      select edge."end", page.* from edge left join page on true order by ${sql.literal(order)}`,
    (rows) => ({
      end: rows[0]?.end ?? null,
      rows: rows.flatMap((row) => row.id === null ? [] : [row as unknown as Row]),
    }),
  )

/** The place of the page behind: its last item where it is full. */
const endOf = (items: ReadonlyArray<PackItem>, limit: number, end: string | null): PackPage => ({
  items,
  end: items.length === limit ? items.at(-1)!.id : end,
})

interface Told {
  readonly id: string
  /** JSON, with times as `Timestamp`. */
  readonly told: Readonly<Record<string, unknown>>
}

const wire = `'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'`

/** The person and those who were merged into them. */
const names = (sql: PgClient.PgClient, personId: PersonId) =>
  sql`array(select ${personId}::text union select id from people where merged_into = ${personId})`

/** The versions of a person: by an array an index on the person is of use, by `or` none. */
const held = (sql: PgClient.PgClient, column: string, { personId }: PackFilter) =>
  personId === null ? sql`true` : sql`${sql.literal(column)} = any(${names(sql, personId)})`

/**
 * The first `looked` rows of `rows`, in their order: of an institution, or of each name of a person by itself. An index on
 * the name and the order has these at its beginning; for all names at once PostgreSQL, which has no statistics of a
 * partial index, took the institution's index instead and read all of it.
 */
const first = (
  sql: PgClient.PgClient,
  { personId }: PackFilter,
  { column, order, rows }: {
    readonly column: string
    readonly order: string
    readonly rows: (of: Statement.Fragment) => Statement.Fragment
  },
) => {
  const some = (of: Statement.Fragment) => sql`${rows(of)} order by ${sql.literal(order)} limit ${looked}`
  return personId === null ? some(sql`true`) : sql`
    select s.* from unnest(${names(sql, personId)}) n(id)
    cross join lateral (${some(sql`${sql.literal(column)} = n.id`)}) s
    order by ${sql.literal(order)} limit ${looked}`
}

/**
 * Access with the versions that were in force in the span; and from before the span's end each time that its end was set,
 * and each confirmation that it is still needed.
 */
const accessPage = (sql: PgClient.PgClient): Page => {
  const time = (column: string) => sql.literal(`to_char(${column} at time zone 'utc', ${wire})`)
  return Effect.fnUntraced(function* (filter, afterId, limit) {
    const { institutionId, review, since, until } = filter
    const inForce = sql`v.created_at < ${until} and (${since}::timestamptz is null or not exists (
      select from access_versions n where n.access_id = v.access_id and n.access_version = v.access_version + 1
        and n.created_at <= ${since}))`
    const seen = sql`
      select distinct v.access_id as id from access_versions v
      where v.institution_id = ${institutionId} and v.access_id > ${afterId} and ${held(sql, "v.person_id", filter)}
        and ${review === null ? sql`true` : sql`v.access_id = ${review.access_id}`}
      order by v.access_id limit ${looked}`
    const page = sql`
      select a.access_id as id, json_build_object('access_id', a.access_id, 'versions', (
        select json_agg(json_build_object('access_version', v.access_version, 'project_id', v.project_id,
          'person_id', v.person_id, 'role', v.role, 'state', v.state, 'digest', v.digest, 'event_id', v.event_id,
          'created_at', ${time("v.created_at")}, 'made_by', v.made_by, 'approved_by', v.approved_by)
          order by v.access_version)
        from access_versions v
        where v.access_id = a.access_id and v.institution_id = ${institutionId} and ${inForce}
      ), 'ends', (
        select coalesce(json_agg(json_build_object('ends_at', ${time("n.ends_at")}, 'set_at', ${time("n.set_at")},
          'made_by', n.made_by, 'approved_by', n.approved_by, 'reason', n.reason, 'request_id', n.request_id,
          'access_version', n.access_version)
          order by n.id), '[]')
        from access_ends n
        where n.access_id = a.access_id and n.set_at < ${until} and ${setIn(sql, institutionId)}
      ), 'confirmations', (
        select coalesce(json_agg(json_build_object('access_version', c.access_version, 'confirmed_by', c.confirmed_by,
          'confirmed_at', ${time("c.confirmed_at")}, 'reason', c.reason, 'campaign_id', c.campaign_id)
          order by c.id), '[]')
        from access_confirmations c
        where c.access_id = a.access_id and c.institution_id = ${institutionId} and c.confirmed_at < ${until}
      )) as told
      from (
        select s.id as access_id from (${seen}) s
        where exists (
          select from access_versions v
          where v.access_id = s.id and v.institution_id = ${institutionId} and ${inForce}
            and ${held(sql, "v.person_id", filter)})
        order by s.id limit ${limit}
      ) a order by a.access_id`
    const { end, rows } = yield* bounded<Told>(sql, { limit, order: "page.id", page, seen })
    const items = rows.map(({ id, told }) => ({ id, line: { line: "access", ...told }, subjects: [`access:${id}`] }))
    return endOf(items, limit, end)
  })
}

/** Requests for Access, for its revocation and for memberships, with their policy reviews and signatures. */
const requestPage = (sql: PgClient.PgClient): Page => {
  const time = (column: string) => sql.literal(`to_char(${column} at time zone 'utc', ${wire})`)
  return Effect.fnUntraced(function* (filter, afterId, limit) {
    const { institutionId, review, since, until } = filter
    // As the index requests_decided_access has it.
    const accessId =
      sql`case kind when 'access' then result_id when 'access_revocation' then fields ->> 'access_id' end`
    const seen = first(sql, filter, {
      column: "coalesce(person_id, author)",
      order: "id",
      rows: (of) =>
        sql`
          select * from requests
          where institution_id = ${institutionId} and kind in ('access', 'access_revocation', 'membership')
            and id > ${afterId === "" ? "00000000-0000-0000-0000-000000000000" : afterId}::uuid and ${of}
            and ${review === null ? sql`true` : sql`${accessId} = ${review.access_id}`}`,
    })
    const page = sql`
      select r.id::text as id, json_build_object('request_id', r.id, 'kind', r.kind, 'state', r.state,
        'person_id', coalesce(r.person_id, r.author), 'requested_by', r.author, 'project_id', r.project_id,
        'fields', r.fields, 'reason', r.reason, 'requested_at', ${time("r.created_at")},
        'decided_at', ${time("r.decided_at")}, 'access_id', ${accessId},
        'event_id', r.event_id, 'reviews', coalesce(p.told, '[]')) as told, coalesce(p.ids, '{}') as reviews
      from (
        select * from (${seen}) s
        where created_at < ${until} and (${since}::timestamptz is null or coalesce(decided_at, 'infinity') >= ${since})
        order by id limit ${limit}
      ) r
      left join lateral (
        select array_agg(p.id::text order by p.id) as ids, json_agg(json_build_object('review_id', p.id,
          'required_roles', p.required_roles, 'state', p.state, 'created_at', ${time("p.created_at")},
          'decided_at', ${time("p.decided_at")}, 'declined_by', p.declined_by, 'declined_role', p.declined_role,
          'decline_reason', p.decline_reason, 'approvals', (
            select coalesce(json_agg(json_build_object('role', a.role, 'person_id', a.person_id,
              'stands_in', a.stands_in, 'reason', a.reason, 'approved_at', ${time("a.approved_at")})
              order by a.approved_at, a.role), '[]')
            from policy_approvals a where a.review_id = p.id)) order by p.id) as told
        from policy_reviews p where p.request_id = r.id
      ) p on true
      order by r.id`
    const { end, rows } = yield* bounded<Told & { readonly reviews: ReadonlyArray<string> }>(
      sql,
      { limit, order: "page.id", page, seen },
    )
    const items = rows.map(({ id, reviews, told }) => ({
      id,
      line: { line: "request", ...told },
      subjects: [`request:${id}`, ...reviews.map((review) => `policy-review:${review}`)],
    }))
    return endOf(items, limit, end)
  })
}

/** Reviews of Access, each with its whole chain of evidence. */
const reviewPage = (sql: PgClient.PgClient): Page => {
  const entries = entriesOf(sql, sql`access_reviews.id`)
  return Effect.fnUntraced(function* (filter, afterId, limit) {
    const { institutionId, review, since, until } = filter
    const behind = afterId === "" ? sql`true` : sql`(proposed_at, id) > (select proposed_at, id from access_reviews
      where id = ${afterId}::uuid and institution_id = ${institutionId})`
    const seen = first(sql, filter, {
      column: "person_id",
      order: "proposed_at, id",
      rows: (of) =>
        sql`
          select id, proposed_at, revoked_at from access_reviews
          where institution_id = ${institutionId} and ${of} and ${behind}
            and ${review === null ? sql`true` : sql`id = ${review.id}::uuid`}`,
    })
    const page = sql`
      select ${sql.literal(reviewColumns)}, ${entries} as entries from access_reviews where id in (
        select s.id from (${seen}) s
        where s.proposed_at < ${until} and (${since}::timestamptz is null or coalesce(s.revoked_at, 'infinity') >= ${since})
        order by s.proposed_at, s.id limit ${limit})`
    const { end, rows } = yield* bounded<ReviewRow & { readonly entries: string }>(
      sql,
      { limit, order: "page.proposed_at, page.id", page, seen },
    )
    const items = rows.map((row) => ({
      id: row.id,
      line: { line: "review", ...viewOfEvidence(row) },
      subjects: [`access-review:${row.id}`],
    }))
    return endOf(items, limit, end)
  })
}

/** The page of each section. */
export const packPages = (sql: PgClient.PgClient): Readonly<Record<PackSection, Page>> => ({
  access: accessPage(sql),
  requests: requestPage(sql),
  reviews: reviewPage(sql),
})
