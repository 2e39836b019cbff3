/**
 * What falls with a project that is withdrawn, whoever withdrew it, all in the transaction that withdraws it: open
 * requests on it, its client, its service grants and the sessions by way of its client. Its Access stays, as evidence.
 */
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import { PolicyReviews } from "../../access/PolicyReviews.ts"
import { requestRows } from "../../access/RequestRows.ts"
import { ServiceGrants } from "../../access/ServiceGrants.ts"
import type { Fact } from "../../lifecycle/Positions.ts"
import { clientSessions } from "../../people/ClientSessions.ts"
import { Database } from "../../platform/Database.ts"
import { Timers } from "../../platform/Timers.ts"
import { jobQueue } from "../ProviderJobs/Queue.ts"

export interface Ending {
  readonly projectId: string
  readonly institutionId: string
  /** The provider's client, where the project has one. */
  readonly clientId: string | null
  /** Who withdraws it; null: the directory. */
  readonly personId: string | null
  readonly reason: string
}

export const endings = Effect.gen(function* () {
  const { sql } = yield* Database
  const grants = yield* ServiceGrants
  const jobs = yield* jobQueue
  const reviews = yield* PolicyReviews
  const timers = yield* Timers
  const requests = requestRows(sql)
  const { end: endSessions } = yield* clientSessions

  /** Nobody decides on what is no longer there. */
  const closeRequests = Effect.fnUntraced(function* (projectId: string) {
    for (const open of yield* requests.lockOpen(projectId)) {
      yield* requests.change(open, { state: open.kind === "access" ? "declined" : "superseded" })
      yield* reviews.supersede(open.id)
      yield* timers.set(open.id, [])
    }
  })

  /** Of a locked project; gives the job that disables its client, where there is or may be one. */
  const end = Effect.fnUntraced(function* ({ clientId, personId, projectId, reason }: Ending) {
    yield* closeRequests(projectId)
    yield* jobs.drop(projectId, "project_withdrawn")
    const open = yield* sql`
      select from provider_jobs where project_id = ${projectId} and state <> 'effective' limit 1`
    const jobId = clientId !== null || open.length > 0 ? yield* jobs.add({ kind: "client.disable", projectId }) : null
    yield* grants.revokeAll(projectId, personId, reason)
    return jobId
  })

  /** Ends the sessions, and gives what the product is to be told of them after the withdrawal itself. */
  const sessions = (
    { clientId, institutionId, personId, projectId }: Ending,
  ): Effect.Effect<ReadonlyArray<Fact>, SqlError.SqlError> =>
    endSessions({
      ...{ projectId, institutionId, clientId, reason: "PROJECT_WITHDRAWN" },
      initiatedBy: personId === null ? "system" : "admin",
    })

  return { end, sessions }
})
