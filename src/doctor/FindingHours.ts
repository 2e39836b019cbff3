/**
 * What a finding counts, by the hour of the last 24: when what waits or failed came to be. It is counted for subjects that
 * are not fine and whose rows a small index finds, so that a look costs little and a fine installation nothing.
 */
import { Clock, Effect } from "effect"
import { Database } from "../../services/platform/database/Database.ts"
import type { Finding } from "./Finding.ts"

const hourMillis = 3_600_000
const hours = 24
/** Maximum number of rows of a subject that are counted. */
const most = 10_000

/** SQL of a subject: the times of the rows that its finding is about. */
const timesOf: Readonly<Record<string, string>> = {
  outbox: "select created_at as at from outbox where published_at is null",
  intake: "select received_at as at from intake_rejects where state = 'rejected'",
  mail: "select coalesce(ended_at, created_at) as at from mails where state in ('failed', 'unknown')",
  slack: "select ended_at as at from slack_messages where ended_at is not null and state = 'failed'",
  provider:
    "select updated_at as at from provider_jobs where state <> 'effective' and state in ('failed', 'ambiguous')",
}

export type Hours = ReadonlyMap<string, ReadonlyArray<number>>

/** The hours of each subject, the oldest first, the last one ends now; empty where the database cannot be read. */
export const hoursOf = Effect.fnUntraced(
  function* (findings: ReadonlyArray<Finding>): Effect.fn.Return<Hours, unknown, Database> {
    const { sql } = yield* Database
    const now = new Date(yield* Clock.currentTimeMillis)
    const since = new Date(now.getTime() - hours * hourMillis)
    const asked = [...new Set(findings.flatMap(({ level, what }) => level !== "ok" && what in timesOf ? [what] : []))]
    const counted = yield* Effect.forEach(asked, (what) =>
      Effect.map(
        sql<{ ago: number; n: number }>`
          select floor(extract(epoch from ${now}::timestamptz - at) / 3600)::int as ago, count(*)::int as n
          from (select at from (${sql.literal(timesOf[what]!)}) t where at > ${since} and at <= ${now} limit ${most}) c
          group by 1`,
        (rows) => {
          const found = new Map(rows.map(({ ago, n }) => [ago, n]))
          return [what, Array.from({ length: hours }, (_, n) => found.get(hours - 1 - n) ?? 0)] as const
        },
      ))
    return new Map(counted)
  },
  Effect.timeout("2 seconds"),
  Effect.catchCause((): Effect.Effect<Hours> => Effect.succeed(new Map())),
)
