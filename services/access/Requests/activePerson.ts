/** Whom a request is carried out for: they may have been suspended since they asked, or be somebody else by now. */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import { persons } from "../../people/Persons.ts"

export const activePerson = (sql: PgClient.PgClient) => {
  const people = persons(sql)

  /** The id of whoever this person turned out to be, whose row stays locked; null where they are not active. */
  return Effect.fnUntraced(function* (personId: string) {
    const [named] = yield* people.lock([personId])
    const [person] = named === undefined || named.canonical === named.id
      ? [named]
      : yield* people.lock([named.canonical])
    return person !== undefined && person.status === "active" && !person.removed ? person.id : null
  })
}
