/**
 * Ends the sessions that people have through one project's client. Their tokens are refused from the commit on. The
 * project's product gets an event for every person with Access: up to a limit in the transaction that ends the
 * sessions, the rest by a durable job, since otherwise a project with very many people could not be ended.
 */
import { Clock, Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { InstitutionId, PersonId, ProjectId } from "../../schemas/BrandedIds.ts"
import { EventLog, type NewLifecycleEvent } from "../lifecycle/EventLog.ts"
import { Database } from "../platform/database/Database.ts"
import { type JobKind, Jobs, worker } from "../platform/messaging/Jobs.ts"
import { runOnce } from "../platform/database/UnitOfWork.ts"

interface Ending {
  readonly projectId: ProjectId
  readonly institutionId: InstitutionId
  /** The reason's code in the product's event. */
  readonly reason: string
  readonly initiatedBy: NewLifecycleEvent["initiatedBy"]
}

interface Ended extends Ending {
  readonly clientId: string | null
}

/** People for whom one transaction appends events. */
export const toldAtOnce = 1_000

interface Left extends Ending {
  /** The last person with an appended event, by the id in Access. */
  readonly after: string
}

const endedJob: JobKind<Left> = { kind: "people.client-sessions" }

export const clientSessions = Effect.gen(function* () {
  const database = yield* Database
  const { sql } = database
  const jobs = yield* Jobs
  const eventLog = yield* EventLog

  /** The events of the next people after the person `after`; `last` is the last of them where more may be left. */
  const eventsAfter = Effect.fnUntraced(
    function* ({ initiatedBy, institutionId, projectId, reason }: Ending, after: string) {
      const people = yield* sql<{ id: PersonId; issuer: string; subject: string; name: string }>`
      select distinct on (a.person_id) a.person_id as name, coalesce(p.merged_into, p.id) as id, p.issuer, p.subject
      from access a join people p on p.id = a.person_id and p.issuer is not null
      where a.project_id = ${projectId} and a.person_id > ${after} and a.state = 'active' and not a.removed
      order by a.person_id limit ${toldAtOnce}`
      const events = people.map(({ id, issuer, subject }): NewLifecycleEvent => ({
        kind: "session-revoked",
        projectId,
        institutionId,
        person: { id, issuer, subject },
        payload: { reason_admin: { en: reason } },
        initiatedBy,
      }))
      return { events, last: people.length < toldAtOnce ? null : people.at(-1)!.name }
    },
  )

  /** Ends the sessions in the current transaction; returns the events that the transaction has to append. */
  const end = Effect.fnUntraced(function* (
    { clientId, ...ending }: Ended,
  ): Effect.fn.Return<ReadonlyArray<NewLifecycleEvent>, SqlError.SqlError> {
    const now = new Date(yield* Clock.currentTimeMillis)
    if (clientId !== null) {
      yield* sql`update sessions set revoked_at = ${now} where client_id = ${clientId} and revoked_at is null`
      // The cut-off also ends sessions that a process has noted and not written yet (SessionActivity).
      yield* sql`
        insert into client_floors (client_id, before) values (${clientId}, ${now})
        on conflict (client_id) do update set before = greatest(client_floors.before, excluded.before)`
    }
    const { events, last } = yield* eventsAfter(ending, "")
    if (last !== null) yield* jobs.add(endedJob, { ...ending, after: last })
    return events
  })

  const next = Effect.fnUntraced(function* (args: Left, cursor: unknown) {
    const batch = Effect.gen(function* () {
      const { events, last } = yield* eventsAfter(args, typeof cursor === "string" ? cursor : args.after)
      yield* eventLog.append(...events)
      return { done: events.length, next: last === null ? null : { cursor: last } }
    })
    return yield* Effect.provideService(runOnce(batch), Database, database)
  })

  return { end, worker: worker(endedJob, next) }
})
