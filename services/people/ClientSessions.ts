/**
 * Sessions that somebody has by way of one project's client: they end with it (specification 000, Events 5). Tokens of
 * theirs are refused from the commit on; the project's product hears of everyone who has Access to it.
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { Fact } from "../lifecycle/Positions.ts"

interface Ended {
  readonly projectId: string
  readonly institutionId: string
  readonly clientId: string | null
  /** A code, as the product is told. */
  readonly reason: string
  readonly initiatedBy: Fact["initiatedBy"]
}

/** Ends the sessions in the current transaction, and gives what the product has to be told of them. */
export const endClientSessions = (sql: PgClient.PgClient) =>
  Effect.fnUntraced(function* (
    { clientId, initiatedBy, institutionId, projectId, reason }: Ended,
  ): Effect.fn.Return<ReadonlyArray<Fact>, SqlError.SqlError> {
    const now = new Date(yield* Clock.currentTimeMillis)
    if (clientId !== null) {
      yield* sql`update sessions set revoked_at = ${now} where client_id = ${clientId} and revoked_at is null`
      // What was seen and is not written yet is as dead.
      yield* sql`
        insert into client_floors (client_id, before) values (${clientId}, ${now})
        on conflict (client_id) do update set before = greatest(client_floors.before, excluded.before)`
    }
    const people = yield* sql<{ id: string; issuer: string; subject: string }>`
      select distinct on (p.id) coalesce(p.merged_into, p.id) as id, p.issuer, p.subject
      from access a join people p on p.id = a.person_id and p.issuer is not null
      where a.project_id = ${projectId} and a.state = 'active' and not a.removed order by p.id`
    return people.map((person): Fact => ({
      kind: "session-revoked",
      projectId,
      institutionId,
      person,
      payload: { reason_admin: { en: reason } },
      initiatedBy,
    }))
  })
