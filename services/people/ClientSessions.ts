/**
 * Sessions that somebody has by way of one project's client: they end with it. Tokens of
 * theirs are refused from the commit on; the project's product hears of everyone who has Access to it: of so many in the
 * transaction that ends them, and of the rest by a durable job, or a project with very many people could not be ended.
 */
import { Clock, Effect } from "effect"
import type { SqlError } from "effect/sql"
import { type Fact, Positions } from "../lifecycle/Positions.ts"
import { Database } from "../platform/database/Database.ts"
import { type JobKind, Jobs, worker } from "../platform/messaging/Jobs.ts"
import { inTransaction } from "../platform/database/Transact.ts"

interface Ending {
  readonly projectId: string
  readonly institutionId: string
  /** A code, as the product is told. */
  readonly reason: string
  readonly initiatedBy: Fact["initiatedBy"]
}

interface Ended extends Ending {
  readonly clientId: string | null
}

/** People that one transaction tells of. */
export const toldAtOnce = 1_000

interface Left extends Ending {
  /** The last person that was told of, as Access names them. */
  readonly after: string
}

const endedJob: JobKind<Left> = { kind: "people.client-sessions" }

export const clientSessions = Effect.gen(function* () {
  const database = yield* Database
  const { sql } = database
  const jobs = yield* Jobs
  const positions = yield* Positions

  /** What is to be told of the next ones after the person `after`; `last` is the last of them where some may be left. */
  const news = Effect.fnUntraced(function* ({ initiatedBy, institutionId, projectId, reason }: Ending, after: string) {
    const people = yield* sql<{ id: string; issuer: string; subject: string; name: string }>`
      select distinct on (a.person_id) a.person_id as name, coalesce(p.merged_into, p.id) as id, p.issuer, p.subject
      from access a join people p on p.id = a.person_id and p.issuer is not null
      where a.project_id = ${projectId} and a.person_id > ${after} and a.state = 'active' and not a.removed
      order by a.person_id limit ${toldAtOnce}`
    const facts = people.map(({ id, issuer, subject }): Fact => ({
      kind: "session-revoked",
      projectId,
      institutionId,
      person: { id, issuer, subject },
      payload: { reason_admin: { en: reason } },
      initiatedBy,
    }))
    return { facts, last: people.length < toldAtOnce ? null : people.at(-1)!.name }
  })

  /** Ends the sessions in the current transaction, and gives what the product has to be told of them in it. */
  const end = Effect.fnUntraced(function* (
    { clientId, ...ending }: Ended,
  ): Effect.fn.Return<ReadonlyArray<Fact>, SqlError.SqlError> {
    const now = new Date(yield* Clock.currentTimeMillis)
    if (clientId !== null) {
      yield* sql`update sessions set revoked_at = ${now} where client_id = ${clientId} and revoked_at is null`
      // What was seen and is not written yet is as dead.
      yield* sql`
        insert into client_floors (client_id, before) values (${clientId}, ${now})
        on conflict (client_id) do update set before = greatest(client_floors.before, excluded.before)`
    }
    const { facts, last } = yield* news(ending, "")
    if (last !== null) yield* jobs.add(endedJob, { ...ending, after: last })
    return facts
  })

  const next = Effect.fnUntraced(function* (args: Left, cursor: unknown) {
    const told = Effect.gen(function* () {
      const { facts, last } = yield* news(args, typeof cursor === "string" ? cursor : args.after)
      yield* positions.append(...facts)
      return { done: facts.length, next: last === null ? null : { cursor: last } }
    })
    return yield* Effect.provideService(inTransaction(told), Database, database)
  })

  return { end, worker: worker(endedJob, next) }
})
