/**
 * What a finding counts, by the hour of the last 24: when what waits or failed came to be. It is counted for subjects that
 * are not fine. An index finds the rows of each subject, the newest first, and 10,000 rows at most are read of it, so that
 * a look costs little and a fine installation nothing. A subject that cannot be counted in time leaves the others.
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import type { Statement } from "effect/sql"
import { Database } from "../../services/platform/database/Database.ts"
import type { Finding } from "./Finding.ts"

const hourMillis = 3_600_000
const hours = 24
/** Maximum number of rows of a subject that are read. */
const most = 10_000
const deadline = "2 seconds"

/** The rows that a finding is about: SQL of their times `at`, of those after `since` and perhaps others. */
type Times = (sql: PgClient.PgClient, since: Date) => Statement.Fragment

const timesOf: Readonly<Record<string, Times>> = {
  // A message is due when it is made, or later once it has failed. Ordered ones have no index by time: those of the first
  // lanes are read, and where there are more the count says that it is not whole.
  outbox: (sql, since) =>
    sql`(select created_at as at from outbox
        where published_at is null and aggregate_id is null and claim is null and not_before > ${since}
        order by not_before desc limit ${most})
      union all (select created_at from outbox where claim is not null and aggregate_id is null limit ${most})
      union all (select created_at from outbox
        where published_at is null and aggregate_id is not null order by lane limit ${most})`,
  intake: (sql, since) =>
    sql`select received_at as at from intake_rejects where state = 'rejected' and received_at > ${since}
      order by received_at desc`,
  mail: (sql, since) =>
    sql`select coalesce(ended_at, created_at) as at from mails
      where state in ('failed', 'unknown') and coalesce(ended_at, created_at) > ${since} order by 1 desc`,
  slack: (sql, since) =>
    sql`select ended_at as at from slack_messages where state = 'failed' and ended_at > ${since} order by 1 desc`,
  provider: (sql, since) =>
    sql`select updated_at as at from provider_jobs where state in ('failed', 'ambiguous') and updated_at > ${since}
      order by 1 desc`,
}

export interface HoursOfSubject {
  /** The oldest hour first; the last one ends now. */
  readonly hours: ReadonlyArray<number>
  /** Whether there may be more of them than were read. */
  readonly capped: boolean
}

export type Hours = ReadonlyMap<string, HoursOfSubject>

/** The hours of one subject; null where they cannot be read in time. */
const countOf = Effect.fnUntraced(
  function* (times: Times, now: Date): Effect.fn.Return<HoursOfSubject | null, unknown, Database> {
    const { sql } = yield* Database
    const since = new Date(now.getTime() - hours * hourMillis)
    // The rows beside the span, which an index could not leave out, have no hour.
    const rows = yield* sql<{ ago: number | null; n: number }>`
      select case when at > ${since} and at <= ${now} then
          floor(extract(epoch from ${now}::timestamptz - at) / 3600)::int end as ago, count(*)::int as n
      from (select at from (${times(sql, since)}) t limit ${most}) c group by 1`
    const found = new Map(rows.map(({ ago, n }) => [ago, n]))
    return {
      hours: Array.from({ length: hours }, (_, n) => found.get(hours - 1 - n) ?? 0),
      capped: rows.reduce((sum, { n }) => sum + n, 0) >= most,
    }
  },
  Effect.timeout(deadline),
  Effect.catchCause(() => Effect.succeed(null)),
)

/** The hours of each subject that is not fine and can be counted. */
export const hoursOf = Effect.fnUntraced(function* (findings: ReadonlyArray<Finding>) {
  const now = new Date(yield* Clock.currentTimeMillis)
  const asked = [...new Set(findings.flatMap(({ level, what }) => level !== "ok" && what in timesOf ? [what] : []))]
  const counted = yield* Effect.forEach(
    asked,
    (what) => Effect.map(countOf(timesOf[what]!, now), (found) => found === null ? [] : [[what, found] as const]),
    { concurrency: 2 },
  )
  return new Map(counted.flat()) satisfies Hours
})
