/**
 * Ends everything that ends with a withdrawn project, in the transaction of the withdrawal: open requests on the
 * project, its client, its service grants and the sessions through its client. Its Access stays, as evidence.
 */
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { InstitutionId, PersonId, ProjectId } from "../../../schemas/BrandedIds.ts"
import { ServiceGrants } from "../../access/ServiceGrants.ts"
import type { NewLifecycleEvent } from "../../lifecycle/EventLog.ts"
import { clientSessions } from "../../people/ClientSessions.ts"
import { Database } from "../../platform/database/Database.ts"
import { jobQueue } from "../ProviderJobs/Queue.ts"
import { closings } from "./CloseRequests.ts"

export interface Ending {
  readonly projectId: ProjectId
  readonly institutionId: InstitutionId
  /** The provider's client, where the project has one. */
  readonly clientId: string | null
  /** The person who withdraws the project; null: the directory. */
  readonly personId: PersonId | null
  readonly reason: string
}

export const endings = Effect.gen(function* () {
  const { sql } = yield* Database
  const { close } = yield* closings
  const grants = yield* ServiceGrants
  const jobs = yield* jobQueue
  const { end: endSessions } = yield* clientSessions

  /** For a locked project; returns the job that disables its client, where it has or may have one. */
  const end = Effect.fnUntraced(function* ({ clientId, personId, projectId, reason }: Ending) {
    yield* close(projectId, "all", personId)
    yield* jobs.drop(projectId, "project_withdrawn")
    const open = yield* sql`
      select from provider_jobs where project_id = ${projectId} and state <> 'effective' limit 1`
    const jobId = clientId !== null || open.length > 0 ? yield* jobs.add({ kind: "client.disable", projectId }) : null
    yield* grants.revokeAll(projectId, personId, reason)
    return jobId
  })

  /** Ends the sessions; returns their events, to be appended after the withdrawal's own. */
  const sessions = (
    { clientId, institutionId, personId, projectId }: Ending,
  ): Effect.Effect<ReadonlyArray<NewLifecycleEvent>, SqlError.SqlError> =>
    endSessions({
      projectId,
      institutionId,
      clientId,
      reason: "PROJECT_WITHDRAWN",
      initiatedBy: personId === null ? "system" : "admin",
    })

  return { end, sessions }
})
