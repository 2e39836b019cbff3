/**
 * Reads a project, and lists an institution's projects. One statement checks the caller and finds the rows, so a
 * project that the caller may not see is answered as one that does not exist. Without locks: a role that ends at that
 * moment may still read, and decides nothing.
 */
import { Clock, Effect } from "effect"
import type { InstitutionId, PersonId, ProjectId } from "../../../schemas/BrandedIds.ts"
import { NotFound } from "../../../schemas/problems/HttpProblems.ts"
import { newestReview, requestRows } from "../../requests/RequestRows.ts"
import { type Held, heldIn, needs, standingOf } from "../../people/Roles.ts"
import { Database } from "../../platform/database/Database.ts"
import { type Beside, listedOf, projectOf, type ReadRow } from "./ProjectViews.ts"
import { projectRows } from "./Rows.ts"

/** Launch proposals of a project that are shown. */
const shownLaunches = 20

export interface InstitutionPage {
  readonly personId: PersonId
  readonly institutionId: InstitutionId
  readonly limit: number
  /** The last project of the page before. */
  readonly afterId: string | null
}

interface Caller {
  readonly operator: boolean
  readonly held: ReadonlyArray<Held> | null
}

interface FoundRow extends ReadRow, Beside, Caller {
  readonly owns: boolean
  readonly uses: boolean
}

/** The project is null in the row of an empty page. */
type PageRow = Caller & (ReadRow | { readonly [Key in keyof ReadRow]: null })

export const reading = Effect.gen(function* () {
  const { reads } = yield* Database
  const { columns } = projectRows(reads)
  const requests = requestRows(reads)

  const isOperator = (personId: PersonId) =>
    reads`exists (select from people
      where id = ${personId} and operator and not auditor and status = 'active' and not removed and merged_into is null)`

  /** SQL of requests of one kind on the project `j`, newest first. */
  const requestsOf = (kind: "website" | "launch", most: number) =>
    reads`select ${requests.columns}, v.review_id, v.required_roles from requests r ${newestReview(reads)}
      where r.project_id = j.id and r.kind = ${kind} order by r.id desc limit ${most}`

  const read = Effect.fn("Projects.read")(
    function* ({ personId, projectId }: { readonly personId: PersonId; readonly projectId: ProjectId }) {
      const now = new Date(yield* Clock.currentTimeMillis)
      const [found] = yield* reads<FoundRow>`
        select ${columns}, installed_version, updated_at, operator, owns, uses, held,
          (select to_jsonb(r) from (${requestsOf("website", 1)}) r) as registration,
          (select jsonb_agg(r order by r.id desc) from (${requestsOf("launch", shownLaunches)}) r) as launches,
          (select jsonb_agg(jsonb_build_object('person_id', o.person_id, 'active', o.active, 'since', o.since)
              order by o.person_id collate "C")
            from project_owners o join people p on p.id = o.person_id
            where o.project_id = j.id and not o.removed) as owners
        from projects j cross join lateral (
          select ${isOperator(personId)} as operator,
            exists (
              select from project_owners o join people p on p.id = o.person_id and p.status = 'active'
                and not p.removed and p.merged_into is null and not p.auditor
              where o.project_id = j.id and o.person_id = ${personId} and o.active and not o.removed) as owns,
            exists (
              select from access a
              where a.project_id = j.id and a.state = 'active' and not a.removed
                and a.person_id in (select id from people where id = ${personId} or merged_into = ${personId})) as uses,
            (select jsonb_agg(h) from (${heldIn(reads, personId, reads.literal("j.institution_id"), now)}) h) as held
        ) caller
        where id = ${projectId} and not removed and (operator or owns or uses or held is not null)`
      if (found === undefined) return yield* new NotFound()
      const standing = standingOf(personId, found.institution_id, found.held ?? [])
      if (found.operator || found.owns || standing?.sponsor || standing?.administrator) return projectOf(found, found)
      if (found.uses || standing === null) return projectOf(found, null)
      return yield* Effect.andThen(needs(standing, "sponsor", "administrator"), new NotFound())
    },
  )

  const list = Effect.fn("Projects.list")(
    function* ({ afterId, institutionId, limit, personId }: InstitutionPage) {
      const now = new Date(yield* Clock.currentTimeMillis)
      const rows = yield* reads<PageRow>`
        with caller as materialized (
          select ${isOperator(personId)} as operator,
            (select jsonb_agg(h) from (${heldIn(reads, personId, reads`${institutionId}`, now)}) h) as held
          from institutions where id = ${institutionId} and not removed
        )
        select caller.operator, caller.held, page.* from caller left join lateral (
          select ${columns}, installed_version, updated_at from projects
          where institution_id = ${institutionId} and not removed and (${afterId}::text is null or id > ${afterId})
            and (caller.operator
              or caller.held @> '[{"role":"sponsor","effective":true}]'
              or caller.held @> '[{"role":"administrator","effective":true}]')
          order by id limit ${limit}
        ) page on true
        order by page.id`
      const [caller] = rows
      const standing = standingOf(personId, institutionId, caller?.held ?? [])
      if (caller === undefined || !caller.operator && standing === null) return yield* new NotFound()
      if (!caller.operator) yield* needs(standing!, "sponsor", "administrator")
      return { items: rows.flatMap((row) => row.id === null ? [] : [listedOf(row)]) }
    },
  )

  return { list, read }
})
