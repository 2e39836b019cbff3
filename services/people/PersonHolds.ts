/**
 * Holds of people by identity providers. A held person is suspended, as by the directory: no token of theirs is taken,
 * and products hear `account-disabled`. What the directory says meanwhile is kept beside the hold (`held_under`) and
 * counts again once the last provider has released the person; a provider releases its own hold only.
 *
 * Events may come late and in any order: the newest word of a provider on an account counts (`heldAfter`).
 * All changes are parts of the caller's transaction, which has locked the person.
 */
import { Clock, Effect } from "effect"
import type { PersonId } from "../../schemas/BrandedIds.ts"
import { Database } from "../platform/database/Database.ts"
import { PersonEventFanout } from "./PersonEventFanout.ts"

/** A provider's word on an account, and the time of which it tells, in milliseconds since the epoch. */
export interface AccountWord {
  readonly kind: "disabled" | "purged" | "released"
  readonly at: number
}

/** A hold that an operator ended. */
export interface EndedHold {
  readonly transmitter: string
  readonly kind: "disabled" | "purged"
}

/** What counts once a provider has said both. A purged account is not enabled again: its subject may be another's now. */
export const heldAfter = (before: AccountWord | null, told: AccountWord): AccountWord => {
  if (before === null) return told
  const newer = told.at >= before.at ? told : before
  return before.kind === "purged" || told.kind === "purged" ? { kind: "purged", at: newer.at } : newer
}

const holds = (word: AccountWord | null) => word !== null && word.kind !== "released"

export const personHolds = Effect.gen(function* () {
  const { sql } = yield* Database
  const fanout = yield* PersonEventFanout

  const tell = (personId: PersonId, by: "issuer" | "operator") =>
    fanout.tell({ personId, standing: true, renamed: null, by })

  /** Gives the person back the directory's status once no provider holds the person. */
  const restore = Effect.fnUntraced(function* (personId: PersonId, by: "issuer" | "operator") {
    const now = new Date(yield* Clock.currentTimeMillis)
    const [after] = yield* sql<{ status: string }>`
      update people p set status = p.held_under, held_under = null, revision = p.revision + 1, updated_at = ${now}
      where p.id = ${personId} and p.held_under is not null
        and not exists (select from person_holds h where h.person_id = p.id and h.kind <> 'released')
      returning p.status`
    if (after?.status === "active") yield* tell(personId, by)
  })

  const suspend = Effect.fnUntraced(function* (personId: PersonId) {
    const now = new Date(yield* Clock.currentTimeMillis)
    const [after] = yield* sql<{ under: string }>`
      update people p set held_under = p.status, revision = p.revision + 1, updated_at = ${now},
        status = case when p.status = 'active' then 'suspended' else p.status end
      where p.id = ${personId} and p.held_under is null returning p.held_under as under`
    if (after?.under === "active") yield* tell(personId, "issuer")
  })

  /** Takes a provider's word on the account of a person; returns whether it held or released the person by it. */
  const take = Effect.fn("PersonHolds.take")(function* (personId: PersonId, transmitter: string, told: AccountWord) {
    const now = new Date(yield* Clock.currentTimeMillis)
    const [row] = yield* sql<{ kind: AccountWord["kind"]; told_at: Date }>`
      select kind, told_at from person_holds where person_id = ${personId} and transmitter = ${transmitter}`
    const before = row === undefined ? null : { kind: row.kind, at: row.told_at.getTime() }
    const after = heldAfter(before, told)
    yield* sql`
      insert into person_holds as h (person_id, transmitter, kind, told_at, changed_at)
      values (${personId}, ${transmitter}, ${after.kind}, ${new Date(after.at)}, ${now})
      on conflict (person_id, transmitter) do update set kind = excluded.kind, told_at = excluded.told_at,
        changed_at = case when h.kind = excluded.kind then h.changed_at else excluded.changed_at end`
    if (holds(before) === holds(after)) return before?.kind !== after.kind && holds(after)
    yield* holds(after) ? suspend(personId) : restore(personId, "issuer")
    return true
  })

  /** Ends all holds of a person on an operator's word; returns them as they were. */
  const releaseAll = Effect.fn("PersonHolds.releaseAll")(function* (personId: PersonId) {
    const now = new Date(yield* Clock.currentTimeMillis)
    const ended = yield* sql<EndedHold>`
      select transmitter, kind from person_holds where person_id = ${personId} and kind <> 'released'
      order by transmitter collate "C"`
    if (ended.length === 0) return ended
    yield* sql`
      update person_holds set kind = 'released', told_at = ${now}, changed_at = ${now}
      where person_id = ${personId} and kind <> 'released'`
    yield* restore(personId, "operator")
    return ended
  })

  return { take, releaseAll }
})
