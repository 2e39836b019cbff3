/** Deletes authenticators and publishes on DIRECTORY that they are gone. */
import { Clock, Effect } from "effect"
import type { Statement } from "effect/sql"
import { decisionMessage } from "../../../schemas/bus/Decisions.ts"
import type { PersonId } from "../../../schemas/BrandedIds.ts"
import { Database } from "../../platform/database/Database.ts"
import { Outbox } from "../../platform/messaging/Outbox.ts"

export const removing = Effect.gen(function* () {
  const { sql } = yield* Database
  const outbox = yield* Outbox

  /** `which`: SQL of a condition on the rows. */
  return Effect.fnUntraced(function* (which: Statement.Fragment) {
    const removed_at = new Date(yield* Clock.currentTimeMillis).toISOString()
    const gone = yield* sql<{ id: string; person_id: PersonId }>`
      delete from authenticators where ${which} returning id::text as id, person_id`
    yield* outbox.add(...gone.map((one) => decisionMessage({ kind: "authenticator", ...one, removed_at })))
  })
})
