/**
 * Disables a person during recovery, as the directory had done before its message was lost. The person stays disabled
 * until the directory has repeated that message. The events for products are appended in the same transaction.
 */
import { Clock, Effect } from "effect"
import type { PersonId } from "../../schemas/BrandedIds.ts"
import { Database } from "../platform/database/Database.ts"
import { type Identity, PersonEventFanout } from "./PersonEventFanout.ts"

export const disabling = Effect.gen(function* () {
  const { sql } = yield* Database
  const fanout = yield* PersonEventFanout

  /** Disables the person of an identity, in the current transaction; returns the id where that changed it. */
  const disable = Effect.fn("DisablePerson.disable")(function* ({ issuer, subject }: Identity) {
    const now = new Date(yield* Clock.currentTimeMillis)
    const [person] = yield* sql<{ id: PersonId }>`
      update people p set status = 'disabled', status_decided = true, revision = p.revision + 1, updated_at = ${now},
        held_under = case when p.held_under is not null then 'disabled' end
      from identities i
      where i.issuer = ${issuer} and i.subject = ${subject} and p.id = i.person_id and not p.removed
        and p.status <> 'disabled'
      returning p.id`
    if (person === undefined) return null
    yield* fanout.tell({ personId: person.id, standing: true, renamed: null })
    return person.id
  })

  return { disable }
})
