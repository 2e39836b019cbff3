/**
 * The readers of an institution's decisions: a Sponsor, an effective administrator, and an operator; of some of them also
 * an auditor. Without locks: a role that ends at that moment may still read, and decides nothing.
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import type { Statement } from "effect/sql"
import type { InstitutionId, PersonId } from "../../schemas/BrandedIds.ts"
import { NotFound } from "../../schemas/problems/HttpProblems.ts"
import { type Held, heldIn, needs, type Standing, standingOf } from "./Roles.ts"

/** SQL of a condition on a person. */
type Condition = (sql: PgClient.PgClient, personId: PersonId) => Statement.Fragment

/** SQL of whether the person is an active operator. */
export const isOperator: Condition = (sql, personId) =>
  sql`exists (select from people
    where id = ${personId} and operator and not auditor and status = 'active' and not removed and merged_into is null)`

/** SQL of whether the person is an active auditor. */
export const isAuditor: Condition = (sql, personId) =>
  sql`exists (select from people
    where id = ${personId} and auditor and status = 'active' and not removed and merged_into is null)`

/** SQL of whether the person is an active operator or auditor, who see every institution. */
export const seesAll: Condition = (sql, personId) =>
  sql`exists (select from people
    where id = ${personId} and (operator or auditor) and status = 'active' and not removed and merged_into is null)`

/** A person's roles in an institution by `Roles`, and whether the person reads it from outside. */
interface Reader {
  readonly outside: boolean
  readonly held: ReadonlyArray<Held> | null
}

/**
 * Checks by one statement that a person may read an institution's records: a Sponsor, an effective administrator, or a
 * person who meets `outside`. NotFound where the institution does not exist, or where the person has no membership in it;
 * for any other member the problem that names the missing role. Returns the standing of a member; null for a person who
 * meets `outside`.
 */
const reading = (reads: PgClient.PgClient, outside: Condition) =>
  Effect.fnUntraced(function* (personId: PersonId, institutionId: InstitutionId) {
    const now = new Date(yield* Clock.currentTimeMillis)
    const [reader] = yield* reads<Reader>`
      select ${outside(reads, personId)} as outside,
        (select jsonb_agg(h) from (${heldIn(reads, personId, reads`${institutionId}`, now)}) h) as held
      from institutions where id = ${institutionId} and not removed`
    if (reader?.outside === true) return null
    const standing: Standing | null = standingOf(personId, institutionId, reader?.held ?? [])
    if (standing === null) return yield* new NotFound()
    yield* needs(standing, "sponsor", "administrator")
    return standing
  })

/** Readers of what an operator reads of an institution. */
export const institutionReader = (reads: PgClient.PgClient) => reading(reads, isOperator)

/** Readers of what an operator and an auditor read of an institution. */
export const decisionsReader = (reads: PgClient.PgClient) => reading(reads, seesAll)

/** Readers of the reviews of Access, which operators are not. */
export const reviewsReader = (reads: PgClient.PgClient) => reading(reads, isAuditor)
