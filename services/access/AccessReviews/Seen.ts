/**
 * A cache of institutions' lists of reviews, and the value by which PostgreSQL tells that a list is still current. The
 * list joins each review with ten tables, for a thousand reviews at a time; most of the time none of those rows has
 * changed since the last read.
 *
 * `seenOf` is a value over all rows of the list. Of tables whose rows belong to the institution it takes the number of
 * rows and the sum of the hashes of their `xmin`: a written row has a newer `xmin` than any row before, and a deleted
 * row is missing from the number, so no later state of the tables has the value of an earlier one. Of rows that change
 * often for other reasons (people, projects, consumers, streams) it takes the columns that the list shows. A list is
 * kept with the value from its own statement's snapshot.
 */
import type { PgClient } from "@effect/sql-pg"
import type { Statement } from "effect/sql"
import type { InstitutionId } from "../../../schemas/BrandedIds.ts"

/** SQL of the value at `now`, as one column. */
export const seenOf = (sql: PgClient.PgClient, institutionId: InstitutionId, now: Date): Statement.Fragment => {
  const rows = (alias: string) =>
    sql.literal(`count(*) || ' ' || coalesce(sum(hashtextextended(${alias}.xmin::text, 0)), 0)`)
  return sql`
    with r as materialized (
      select xmin, project_id, person_id, access_id from access_reviews where institution_id = ${institutionId}
    ), c as materialized (
      select xmin, id, project_id from access where institution_id = ${institutionId}
    ), a as materialized (
      -- The few Accesses that belong to other institutions by now. "offset 0" looks them up one by one; without it the
      -- plan reads all Accesses.
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
      -- A promoted standby may assign transaction ids again that its primary had assigned.
      pg_postmaster_start_time()::text,
      (select ${rows("r")} from r),
      (select ${rows("a")} from a),
      (select ${rows("c")} from c),
      (select ${rows("m")} from m),
      -- Holders who were merged into other people.
      (select count(*) || ' ' || coalesce(sum(hashtextextended(p.id || ' ' || p.merged_into, 0)), 0)
        from people p where p.merged_into is not null and p.id in (select person_id from r)),
      (select string_agg(distinct m.person_id, ' ' order by m.person_id) from m
        cross join lateral (
          select from people p where p.id = m.person_id and p.status = 'active' and not p.removed and p.merged_into is null
            and not p.auditor
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
      -- Whether a stream still owes an event to its receiver depends on the stream's status.
      (select md5(json_agg(row(s.id, s.status, s.status_reason) order by s.id)::text) from lifecycle_streams s
        where s.id in (
          select stream_id from lifecycle_attempts where project_id in (select project_id from projects_of))),
      (select ${rows("d")} from lifecycle_drift d where d.project_id in (select project_id from projects_of))
    ) as seen`
}

/** A list as JSON bytes, without the time of the read. */
export interface Written {
  readonly seen: string
  /** From `from` until `until` no review of the list expires. */
  readonly from: number
  readonly until: number
  /** The JSON before and after the time of the read. */
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

/** `members`: the members of the list without `institution_id` and `as_of`, which come first. */
export const written = (institutionId: InstitutionId, members: Readonly<Record<string, unknown>>) => ({
  head: encoder.encode(`{"institution_id":${JSON.stringify(institutionId)},"as_of":"`),
  rest: encoder.encode(`",${JSON.stringify(members).slice(1)}`),
})

/** Lists in memory, up to a number of bytes; beyond that the lists that were set longest ago are dropped. */
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
