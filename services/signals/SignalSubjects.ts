/** Finds the person whom a transmitter names, and locks the person to the end of the transaction. */
import { Effect } from "effect"
import type { PersonId } from "../../schemas/BrandedIds.ts"
import { Database } from "../platform/database/Database.ts"
import { Conflict } from "../platform/database/UnitOfWork.ts"
import type { Transmitter } from "./ConfiguredTransmitter.ts"
import type { NamedPerson } from "./SignalDecision.ts"

export interface FoundPerson {
  /** The person after merges, whose sessions end. */
  readonly canonical: PersonId
  /** The person whose own identity this is, who is held: another person may have taken it in. */
  readonly named: PersonId
  /** The issuer of the identity; null: of several, or named by an address. */
  readonly issuer: string | null
}

export const signalSubjects = Effect.gen(function* () {
  const { sql } = yield* Database

  const byIdentity = ({ issuer, subject }: { readonly issuer: string; readonly subject: string }) =>
    sql<FoundPerson>`
      select coalesce(holder.merged_into, holder.id) as canonical, coalesce(came.id, i.person_id) as named, i.issuer
      from identities i join people holder on holder.id = i.person_id and not holder.removed
      left join people came on came.issuer = i.issuer and came.subject = i.subject and came.merged_into is not null
        and not came.removed
      where i.issuer = ${issuer} and i.subject = ${subject}`

  /** Those who have the verified address and sign in at one of the issuers. */
  const byAddress = (email: string, issuers: ReadonlyArray<string>) =>
    sql<FoundPerson>`
      select distinct coalesce(p.merged_into, p.id) as canonical, p.id as named, null::text as issuer
      from people p join identities i on i.person_id = coalesce(p.merged_into, p.id)
        and i.issuer = any(${issuers}::text[])
      where lower(p.email collate "C") = lower(${email}::text collate "C") and not p.removed and p.email_verified`

  const look = Effect.fnUntraced(function* (person: NamedPerson, { subjectIssuers }: Transmitter) {
    const found = "email" in person ? yield* byAddress(person.email, subjectIssuers) : yield* byIdentity(person)
    // An address of two people names nobody.
    return found.length === 1 ? found[0]! : null
  })

  /** The locked person; null where nobody is known by that name. */
  const find = Effect.fnUntraced(function* (person: NamedPerson, transmitter: Transmitter) {
    const found = yield* look(person, transmitter)
    if (found === null) return null
    yield* sql`select from people where id = any(${[found.canonical, found.named]}::text[])
      order by id collate "C" for no key update`
    const locked = yield* look(person, transmitter)
    if (locked?.canonical !== found.canonical || locked.named !== found.named) return yield* new Conflict()
    return found
  })

  return { find }
})
