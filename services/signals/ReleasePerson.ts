/** Releases a person whom identity providers hold, on an operator's word, in one transaction with its record. */
import { Effect } from "effect"
import type { PersonId } from "../../schemas/BrandedIds.ts"
import { personHolds } from "../people/PersonHolds.ts"
import { Database } from "../platform/database/Database.ts"
import { mustBeOpen } from "../platform/database/Installation.ts"
import { run } from "../platform/database/UnitOfWork.ts"
import { Audit } from "../platform/observability/Audit.ts"
import { CurrentOperator } from "../platform/observability/CurrentOperator.ts"

export interface ShownHold {
  readonly person_id: string
  readonly transmitter: string
  readonly kind: "disabled" | "purged"
  readonly changed_at: Date
}

/** The people who are held, those held last first. */
export const listHolds = Effect.fnUntraced(function* (limit: number) {
  const { sql } = yield* Database
  return yield* sql<ShownHold>`
    select person_id, transmitter, kind, changed_at from person_holds where kind <> 'released'
    order by changed_at desc, person_id, transmitter limit ${limit}`
})

/** Ends all holds of a person; returns how many there were. */
export const releasePerson = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  const { releaseAll } = yield* personHolds

  return Effect.fn("ReleasePerson.release")(function* (personId: PersonId, reason: string) {
    const operator = yield* CurrentOperator
    return yield* run(Effect.gen(function* () {
      yield* mustBeOpen(sql)
      yield* sql`select from people where id = ${personId} for no key update`
      const holds = yield* releaseAll(personId)
      if (holds === 0) return holds
      yield* audit.append({
        action: "person.released",
        actor: operator,
        subject: `person:${personId}`,
        outcome: "done",
        details: { holds, reason },
        decision: true,
      })
      return holds
    }))
  })
})
