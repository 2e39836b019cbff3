/** Holds of people by identity providers: their list, and their end on an operator's word, with its record. */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { PersonId } from "../../schemas/BrandedIds.ts"
import { type EndedHold, personHolds } from "../people/PersonHolds.ts"
import { Database } from "../platform/database/Database.ts"
import { mustBeOpen } from "../platform/database/Installation.ts"
import { Audit } from "../platform/observability/Audit.ts"
import { CurrentOperator } from "../platform/observability/CurrentOperator.ts"

export interface ShownHold {
  readonly person_id: PersonId
  readonly transmitter: string
  readonly kind: "disabled" | "purged"
  readonly told_at: Date
  readonly changed_at: Date
}

/** The last hold of a page. */
export type HoldPosition = Pick<ShownHold, "changed_at" | "person_id" | "transmitter">

/** The holds, those of people who were held last first, behind `after`. */
export const listHolds = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  limit: number,
  after: HoldPosition | null = null,
) {
  const behind = after === null ? sql`true` : sql`changed_at <= ${after.changed_at}
    and (changed_at < ${after.changed_at} or (person_id, transmitter) > (${after.person_id}, ${after.transmitter}))`
  return yield* sql<ShownHold>`
    select person_id, transmitter, kind, told_at, changed_at from person_holds where kind <> 'released' and ${behind}
    order by changed_at desc, person_id, transmitter limit ${limit}`
})

const named = ({ kind, transmitter }: EndedHold) => `${kind} by ${transmitter}`

/** Ends all holds of a person, in the caller's transaction; returns how many there were. */
export const releasePerson = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  const { releaseAll } = yield* personHolds

  return Effect.fn("ReleasePerson.release")(function* (personId: PersonId, reason: string) {
    const operator = yield* CurrentOperator
    yield* mustBeOpen(sql)
    yield* sql`select from people where id = ${personId} for no key update`
    const ended = yield* releaseAll(personId)
    const holds = ended.length
    if (holds === 0) return holds
    yield* audit.append({
      action: "person.released",
      actor: operator,
      subject: `person:${personId}`,
      outcome: "done",
      // A hold that began after the operator looked ended, too: the record says which ones did.
      details: { holds, ended: ended.map(named).join(", "), reason },
      decision: true,
    })
    return holds
  })
})
