/**
 * The readers of an institution's decisions: a Sponsor, an effective administrator, and an operator. Without
 * locks: a role that ends at that moment may still read, and decides nothing.
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import type { InstitutionId, PersonId } from "../../schemas/BrandedIds.ts"
import { NotFound } from "../../schemas/problems/HttpProblems.ts"
import { type Held, heldIn, needs, standingOf } from "./Roles.ts"

/** SQL of whether the person is an active operator. */
export const isOperator = (sql: PgClient.PgClient, personId: PersonId) =>
  sql`exists (select from people
    where id = ${personId} and operator and status = 'active' and not removed and merged_into is null)`

/** A person's roles in an institution by `Roles`, and whether the person is an operator. */
interface Reader {
  readonly operator: boolean
  readonly held: ReadonlyArray<Held> | null
}

/**
 * Checks by one statement that a person may read an institution's records: an operator, a Sponsor or an effective
 * administrator. NotFound where the institution does not exist, or where the person has no membership in it; for any
 * other member the problem that names the missing role.
 */
export const institutionReader = (reads: PgClient.PgClient) =>
  Effect.fnUntraced(function* (personId: PersonId, institutionId: InstitutionId) {
    const now = new Date(yield* Clock.currentTimeMillis)
    const [reader] = yield* reads<Reader>`
      select ${isOperator(reads, personId)} as operator,
        (select jsonb_agg(h) from (${heldIn(reads, personId, reads`${institutionId}`, now)}) h) as held
      from institutions where id = ${institutionId} and not removed`
    const standing = standingOf(personId, institutionId, reader?.held ?? [])
    if (reader === undefined || !reader.operator && standing === null) return yield* new NotFound()
    if (!reader.operator) yield* needs(standing!, "sponsor", "administrator")
  })
