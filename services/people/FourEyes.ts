/**
 * Four eyes: whether two people are independent of each other, by the makers and approvers of their persons, identities,
 * memberships and ownerships (docs/guarantees.md).
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import type { PersonId, ProjectId } from "../../schemas/BrandedIds.ts"
import { FourEyesRequired } from "../../schemas/problems/IdentityProblems.ts"

const provenanceMillis = 90 * 86_400_000

/** Provenance older than 90 days does not block four eyes. */
export const provenanceSince = (now: number) => new Date(now - provenanceMillis)

const ownWork = "The caller wrote or signed it already, by this or another identity: another person has to do this."

/** The answers of the service Roles to `independent` and `fourEyes`. */
export const independence = (sql: PgClient.PgClient) => {
  const independent = Effect.fn("Roles.independent")(function* (
    one: PersonId,
    other: PersonId,
    ownersOf: ProjectId | null = null,
  ) {
    const now = yield* Clock.currentTimeMillis
    const [row] = yield* sql<{ independent: boolean }>`
      select counts_as_two(${one}, ${other}, ${ownersOf}::text, ${new Date(now)}) as independent`
    return row!.independent
  })

  const fourEyes = Effect.fn("Roles.fourEyes")(function* (
    one: PersonId,
    other: PersonId,
    ownersOf: ProjectId | null = null,
  ) {
    const since = provenanceSince(yield* Clock.currentTimeMillis)
    // The conditions are those of the function counts_as_two.
    const [row] = yield* sql<{ same: boolean; last: Date | null }>`
      with two as (
        select canonical_person(${one}) as id union select canonical_person(${other})
      ), names as (
        select id, id as canonical from two
        union all select p.id, two.id from people p join two on p.merged_into = two.id
      )
      select canonical_person(${one}) = canonical_person(${other}) as same, max(m.at) as last
      from names x join names y on y.canonical <> x.canonical join provenance m on m.person_id = x.id
      where m.at > ${since} and (m.project_id is null or m.project_id = ${ownersOf}::text)
        and (m.made_by = y.id or y.id = any(m.approved_by))
        and not exists (select from unnest(m.approved_by) a where a not in (select id from names))`
    if (row!.same || row!.last === null) return new FourEyesRequired({ detail: ownWork })
    const until = new Date(row!.last.getTime() + provenanceMillis).toISOString()
    return new FourEyesRequired({
      detail: `Beside person ${other} the caller does not count until ${until}: one of the two made or approved the ` +
        "other's person, identity, membership or ownership. Anybody who is independent of both may do it now.",
    })
  })

  return { independent, fourEyes }
}
