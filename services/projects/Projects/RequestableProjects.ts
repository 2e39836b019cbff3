/**
 * The projects of an institution to which a member may ask for Access, by id and name: a plain member sees nothing else of
 * them. One statement checks the caller and finds the rows.
 */
import { Clock, Effect } from "effect"
import type { ProjectId } from "../../../schemas/BrandedIds.ts"
import { NotFound } from "../../../schemas/problems/HttpProblems.ts"
import { type Held, heldIn, needs, standingOf } from "../../people/Roles.ts"
import { Database } from "../../platform/database/Database.ts"
import type { InstitutionPage } from "./ProjectReading.ts"

/** The project is null in the row of an empty page. */
interface Row {
  readonly held: ReadonlyArray<Held> | null
  readonly id: ProjectId | null
  readonly name: string
}

export const requestableProjects = Effect.gen(function* () {
  const { reads } = yield* Database

  return Effect.fn("Projects.requestable")(
    function* ({ afterId, institutionId, limit, personId }: InstitutionPage) {
      const now = new Date(yield* Clock.currentTimeMillis)
      const rows = yield* reads<Row>`
        with caller as materialized (
          select (select jsonb_agg(h) from (${heldIn(reads, personId, reads`${institutionId}`, now)}) h) as held,
            array(select id from people where id = ${personId} or merged_into = ${personId}) as names
          from institutions where id = ${institutionId} and not removed
        )
        select caller.held, page.* from caller left join lateral (
          select j.id, j.name from projects j
          where j.institution_id = ${institutionId} and not j.removed and j.state <> 'withdrawn'
            and (${afterId}::text is null or j.id > ${afterId}) and caller.held @> '[{"effective":true}]'
            and not exists (
              select from access a
              where a.project_id = j.id and a.person_id = any(caller.names) and a.state = 'active' and not a.removed)
            and not exists (
              select from requests r
              where r.project_id = j.id and r.author = any(caller.names) and r.kind = 'access'
                and r.state = 'submitted' and r.expires_at > ${now})
          order by j.id limit ${limit}
        ) page on true
        order by page.id`
      const [caller] = rows
      const standing = standingOf(personId, institutionId, caller?.held ?? [])
      if (standing === null) return yield* new NotFound()
      yield* needs(standing, "member", "sponsor", "administrator")
      return { items: rows.flatMap(({ id, name }) => id === null ? [] : [{ project_id: id, name }]) }
    },
  )
})
