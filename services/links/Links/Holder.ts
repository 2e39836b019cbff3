/** The holder of an identity for which a link is requested, and whether it may be linked. */
import type { PgClient } from "@effect/sql-pg"
import type { Statement } from "effect/sql"
import type { PersonId } from "../../../schemas/BrandedIds.ts"
import { HTTPValidationError } from "../../../schemas/Validation.ts"
import { answerTo, type Question } from "../../platform/database/FencedCommand.ts"
import { isEntangled } from "./Merging.ts"

interface Holder {
  readonly id: PersonId
  readonly active: boolean
  /** The address, only where it is verified. */
  readonly email: string | null
}

/** The columns that a command loads of an identity. */
export interface Held {
  readonly holder: string
  readonly entangled: boolean
}

/** The person who has an identity; no row where no person has it. */
export const holderOf = (
  sql: PgClient.PgClient,
  issuer: Statement.Fragment,
  subject: Statement.Fragment,
): Question => ({
  rows: sql`
    select k.id, k.status = 'active' and not k.removed and k.merged_into is null as active,
      case when k.email_verified then k.email end as email
    from people k join people n on k.id = coalesce(n.merged_into, n.id) join identities i on i.person_id = n.id
    where i.issuer = ${issuer} and i.subject = ${subject}`,
  // Locks in the order of the tables: people before their identities.
  lock: sql`for share`,
})

export const holderIn = (answer: string): Holder | null => (JSON.parse(answer) as ReadonlyArray<Holder>)[0] ?? null

/** SQL of the columns of `Held`, and of the join that gives the holder's id as `h`. */
export const held = (sql: PgClient.PgClient, issuer: Statement.Fragment, subject: Statement.Fragment) => ({
  columns: sql`${answerTo(sql, holderOf(sql, issuer, subject))} as holder, ${isEntangled(sql, sql`h.id`)} as entangled`,
  join: sql`left join lateral (
    select coalesce(n.merged_into, n.id) as id from identities i join people n on n.id = i.person_id
    where i.issuer = ${issuer} and i.subject = ${subject}) h on true`,
})

/** Whether an identity may be linked with a person: it has no holder, or another active holder who is not entangled. */
export const isLinkable = (holder: Holder | null, entangled: boolean, personId: PersonId): boolean =>
  holder === null || holder.id !== personId && holder.active && !entangled

export const rejected = (field: string) =>
  HTTPValidationError.at(["body", field], "proof_rejected", "The proof does not show another identity of the caller's")
