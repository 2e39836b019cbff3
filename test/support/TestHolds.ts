/** People whom an identity provider holds. */
import { Effect } from "effect"
import { PersonId } from "../../schemas/BrandedIds.ts"
import { Database } from "../../services/platform/database/Database.ts"
import { person } from "./TestIdentity.ts"

interface Hold {
  readonly transmitter?: string
  readonly kind?: "disabled" | "purged"
  readonly since?: Date
}

/** Adds a hold of a person, as a word of the provider does. */
export const hold = Effect.fnUntraced(function* (
  id: PersonId,
  { kind = "disabled", since = new Date(), transmitter = "https://id.example" }: Hold = {},
) {
  const { sql } = yield* Database
  yield* sql`insert into person_holds (person_id, transmitter, kind, told_at, changed_at)
    values (${id}, ${transmitter}, ${kind}, ${since}, ${since})`
  yield* sql`update people set held_under = coalesce(held_under, status), status = 'suspended' where id = ${id}`
})

/** Adds a person with one; returns its id. */
export const heldPerson = (how: Hold = {}) =>
  person({ display_name: "Henry Held" }).pipe(Effect.tap((id) => hold(id, how)))
