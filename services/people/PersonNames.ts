/**
 * Names of people for people who have to do with them. A caller learns the name of a member of an institution where the
 * caller has a membership that has not ended; of an institution where the caller decides, as a Sponsor or an effective
 * administrator, also the names of former members, of owners, of people with Access, and of authors of requests.
 * An auditor learns those of all institutions, and of operators, who sign. Operators learn all names. Any other id is left out, as an unknown one is.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { PersonId } from "../../schemas/BrandedIds.ts"
import type { PersonName } from "../../schemas/identity/Institution.ts"
import { Database } from "../platform/database/Database.ts"
import { isAuditor, isOperator } from "./InstitutionReader.ts"
import { effectiveAt } from "./Roles.ts"

export class PersonNames extends Context.Service<PersonNames, {
  /** In the order of the ids, each once. A merged person has the name of the person that remains. */
  readonly of: (
    personId: PersonId,
    ids: ReadonlyArray<string>,
  ) => Effect.Effect<ReadonlyArray<PersonName>, SqlError.SqlError>
}>()("bailiwick/services/people/PersonNames") {
  static readonly layer = Layer.effect(
    PersonNames,
    Effect.gen(function* () {
      const { reads } = yield* Database

      const of = Effect.fn("PersonNames.of")(function* (personId: PersonId, ids: ReadonlyArray<string>) {
        const now = new Date(yield* Clock.currentTimeMillis)
        return yield* reads<PersonName>`
          with caller as materialized (
            select ${isOperator(reads, personId)} as operator, ${isAuditor(reads, personId)} as auditor
          ), own as materialized (
            select m.institution_id, bool_or(m.role <> 'member' and ${effectiveAt(reads, now)}) as decides
            from people p join institution_memberships m on m.person_id = p.id and not m.removed and m.state <> 'ended'
            join institutions i on i.id = m.institution_id and not i.removed
            where p.id = ${personId} group by m.institution_id
          ), asked as (
            select a.id, n.nth, p.display_name, p.operator, array[a.id, p.id] as names
            from (select id, min(nth) as nth from unnest(${[...ids]}::text[]) with ordinality u(id, nth) group by id) n
            join people a on a.id = n.id and not a.removed
            join people p on p.id = coalesce(a.merged_into, a.id) and not p.removed
          )
          select id as person_id, display_name from asked
          where (select operator from caller) or ${personId} = any(names)
            -- "offset 0" looks a person up by its own index, however many rows an institution has.
            or (select auditor from caller) and (operator
              or exists (select from institution_memberships where person_id = any(names))
              or exists (select from access where person_id = any(names))
              or exists (select from project_owners where person_id = any(names))
              or exists (select from requests where author = any(names)))
            or exists (
              select from (
                select institution_id, not removed and state <> 'ended' as present from institution_memberships
                where person_id = any(names) offset 0
              ) m join own on own.institution_id = m.institution_id where own.decides or m.present)
            or exists (
              select from (select institution_id from access where person_id = any(names) offset 0) a
              join own on own.institution_id = a.institution_id and own.decides)
            or exists (
              select from (select project_id from project_owners where person_id = any(names) offset 0) o
              join projects j on j.id = o.project_id join own on own.institution_id = j.institution_id and own.decides)
            or exists (
              select from (select institution_id from requests where author = any(names) offset 0) r
              join own on own.institution_id = r.institution_id and own.decides)
          order by nth`
      })

      return PersonNames.of({ of })
    }),
  )
}
