/** Counts the waiting rows of a queue, each once and up to a bound; finished rows are not read. */
import type { PgClient } from "@effect/sql-pg"
import type { Statement } from "effect/sql"
import type { QueueName } from "../../schemas/identity/QueueView.ts"

/** Maximum number of rows of a queue that are counted, of claimed rows and of the others each. */
export const most = 100_000

export interface CountRow {
  readonly queue: QueueName
  readonly depth: number
  readonly due: number
  readonly oldest: Date | null
  readonly leased: number
  readonly failing: number
}

/** The waiting rows of each queue, by the condition of their index; claimed rows have another index. */
export const waiting = {
  outbox_unordered: ["outbox", "published_at is null and aggregate_id is null"],
  outbox_ordered: ["outbox", "published_at is null and aggregate_id is not null"],
  mails: ["mails", "not_before is not null"],
  slack: ["slack_messages", "state = 'pending'"],
  jobs: ["jobs", "state = 'pending'"],
  timers: ["timers", "true"],
  provider_jobs: ["provider_jobs", "state = 'pending' and not held"],
} as const

/** SQL: the columns of a CountRow but its name, over rows of `at`, `claim` and `failing`. */
export const counts = (sql: PgClient.PgClient, now: Date) =>
  sql`count(*)::int as depth, count(*) filter (where claim is null and at <= ${now})::int as due,
    min(at) filter (where claim is null and at <= ${now}) as oldest, count(claim)::int as leased,
    count(*) filter (where failing)::int as failing`

/** Counts one queue, at the time `now`. */
export const countOf = (sql: PgClient.PgClient, queue: keyof typeof waiting, now: Date) => {
  const [table, condition] = waiting[queue]
  const rows = (claimed: Statement.Fragment) =>
    sql`(select not_before as at, claim, last_error is not null as failing from ${sql(table)}
      where ${sql.literal(condition)} and ${claimed} limit ${most})`
  return sql<CountRow>`
    select ${queue} as queue, ${counts(sql, now)}
    from (${rows(sql`claim is null`)} union all ${rows(sql`claim is not null`)}) q`
}
