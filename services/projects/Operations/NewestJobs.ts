/** Jobs at the identity provider, newest first. Checks no role: the caller has checked that an operator asks. */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import { type JobRow, viewOf } from "../ProviderJobs/Rows.ts"

/** At most `limit` jobs after the job `afterId`; null: from the newest. */
export interface JobPage {
  readonly limit: number
  readonly afterId: string | null
}

/** Jobs that failed, or whose outcome is unknown: an operator decides on each. */
export const undecidedJobs = Effect.fn("NewestJobs.undecided")(function* (sql: PgClient.PgClient, limit: number) {
  const rows = yield* sql<JobRow>`
    select * from provider_jobs where state in ('failed', 'ambiguous') order by id desc limit ${limit}`
  return rows.map(viewOf)
})

export const newestJobs = Effect.fn("NewestJobs.read")(function* (sql: PgClient.PgClient, { afterId, limit }: JobPage) {
  const rows = yield* sql<JobRow>`
    select * from provider_jobs where ${afterId}::uuid is null or id < ${afterId}::uuid order by id desc limit ${limit}`
  return rows.map(viewOf)
})
