/** Ends a person's console sessions that began up to a time, in the current transaction; returns how many. */
import { Effect } from "effect"
import { Database } from "../platform/database/Database.ts"

export const endConsoleSessions = Effect.fn("ConsoleSessions.endUpTo")(function* (personId: string, before: Date) {
  const { sql } = yield* Database
  const gone = yield* sql`
    delete from console_sessions
    where person_id in (select id from people where ${personId}::text in (id, merged_into))
      and coalesce(authenticated_at, created_at) <= ${before} returning 1`
  return gone.length
})
