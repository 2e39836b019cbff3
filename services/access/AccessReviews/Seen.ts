/**
 * An institution's list of reviews as it was written last, and how PostgreSQL says that it still is what it was. The list
 * joins a review with what stands in ten tables, for a thousand of them at a time; most of the time none of those rows has
 * changed since the list was read before.
 *
 * `seenOf` is a value of all rows that the list is made of. Of tables whose rows are the institution's own it takes their
 * number and the sum of hashes of `xmin`: a row that is written has a newer one than any row that was there, and one that
 * is gone is missing from the number, so no later state of the tables has the value of an earlier one. Of rows that change
 * often for other reasons (people, projects, consumers, streams) it takes what the list shows of them. What was written
 * down stays with the value of its own statement's snapshot.
 */
import type { PgClient } from "@effect/sql-pg"
import type { Statement } from "effect/sql"

/** SQL of the value at `now`, as one column. */
export const seenOf = (sql: PgClient.PgClient, institutionId: string, now: Date): Statement.Fragment => {
  const rows = (alias: string) =>
    sql.literal(`count(*) || ' ' || coalesce(sum(hashtextextended(${alias}.xmin::text, 0)), 0)`)
  return sql`
    with r as materialized (
      select xmin, project_id, person_id, access_id from access_reviews where institution_id = ${institutionId}
    ), c as materialized (
      select xmin, id, project_id from access where institution_id = ${institutionId}
    ), a as materialized (
      -- Few: what other institutions have. One by one, or the plan reads the Accesses of everybody.
      select a.xmin, a.project_id from r cross join lateral (
        select xmin, project_id from access where id = r.access_id offset 0) a
      where not exists (select from c where c.id = r.access_id)
    ), m as materialized (
      select xmin, person_id, role = 'sponsor' and state = 'active' and not removed
        and coalesce(effective_from <= ${now}, true) and coalesce(expires_at > ${now}, true) as sponsors
      from institution_memberships where institution_id = ${institutionId}
    ), projects_of as materialized (
      select project_id from r union select project_id from c union select project_id from a
    )
    select concat_ws(', ',
      -- A standby that was promoted gives numbers of transactions again that its primary had given.
      pg_postmaster_start_time()::text,
      (select ${rows("r")} from r),
      (select ${rows("a")} from a),
      (select ${rows("c")} from c),
      (select ${rows("m")} from m),
      -- Holders who turned out to be other people.
      (select count(*) || ' ' || coalesce(sum(hashtextextended(p.id || ' ' || p.merged_into, 0)), 0)
        from people p where p.merged_into is not null and p.id in (select person_id from r)),
      (select string_agg(distinct m.person_id, ' ' order by m.person_id) from m
        cross join lateral (
          select from people p where p.id = m.person_id and p.status = 'active' and not p.removed and p.merged_into is null
          offset 0) p
        where m.sponsors and exists (
          select from institutions where id = ${institutionId} and status = 'active' and not removed)),
      (select md5(json_agg(row(p.id, p.installed_version) order by p.id)::text) from projects_of cross join lateral (
        select id, installed_version from projects where id = project_id offset 0) p),
      (select md5(json_agg(row(c.project_id, c.consumer, c.delivered_epoch, c.delivered_position, c.delivered_at,
          c.acknowledged_epoch, c.acknowledged_position, c.acknowledged_at, c.installed_version)
          order by c.project_id, c.consumer)::text)
        from lifecycle_consumers c where c.project_id in (select project_id from projects_of)),
      (select ${rows("n")} from lifecycle_given n where n.project_id in (select project_id from projects_of)),
      (select ${rows("t")} from lifecycle_attempts t where t.project_id in (select project_id from projects_of)),
      -- What a receiver is still owed depends on its stream.
      (select md5(json_agg(row(s.id, s.status, s.status_reason) order by s.id)::text) from lifecycle_streams s
        where s.id in (
          select stream_id from lifecycle_attempts where project_id in (select project_id from projects_of))),
      (select ${rows("d")} from lifecycle_drift d where d.project_id in (select project_id from projects_of))
    ) as seen`
}

/** A list as it was written, but for the moment at which it was read. */
export interface Written {
  readonly seen: string
  /** From when and until when no review of it grows old. */
  readonly from: number
  readonly until: number
  /** JSON before and after the moment. */
  readonly head: Uint8Array
  readonly rest: Uint8Array
}

const encoder = new TextEncoder()

/** The JSON of a list read at `now`. */
export const writtenAt = ({ head, rest }: Pick<Written, "head" | "rest">, now: number): Uint8Array => {
  const moment = encoder.encode(new Date(now).toISOString())
  const body = new Uint8Array(head.length + moment.length + rest.length)
  body.set(head)
  body.set(moment, head.length)
  body.set(rest, head.length + moment.length)
  return body
}

/** `members`: of the list, but for `institution_id` and `as_of`, which come first. */
export const written = (institutionId: string, members: Readonly<Record<string, unknown>>) => ({
  head: encoder.encode(`{"institution_id":${JSON.stringify(institutionId)},"as_of":"`),
  rest: encoder.encode(`",${JSON.stringify(members).slice(1)}`),
})

/** Lists that are remembered, at most so many bytes of them; beyond that those go that were written longest ago. */
export class Lists {
  readonly #most: number
  readonly #lists = new Map<string, Written>()
  #bytes = 0

  constructor(most: number) {
    this.#most = most
  }

  get size(): number {
    return this.#lists.size
  }

  get(key: string): Written | undefined {
    return this.#lists.get(key)
  }

  set(key: string, list: Written): void {
    this.#drop(key)
    if (list.rest.length > this.#most / 2) return
    this.#lists.set(key, list)
    this.#bytes += list.rest.length
    for (const oldest of this.#lists.keys()) {
      if (this.#bytes <= this.#most) break
      this.#drop(oldest)
    }
  }

  #drop(key: string): void {
    this.#bytes -= this.#lists.get(key)?.rest.length ?? 0
    this.#lists.delete(key)
  }
}
