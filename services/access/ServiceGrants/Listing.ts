/** The service grants of a project, for its owners, operators and administrators. */
import { Effect } from "effect"
import type { PersonId, ProjectId } from "../../../schemas/BrandedIds.ts"
import { administers, Roles } from "../../people/Roles.ts"
import { Database } from "../../platform/database/Database.ts"
import type { GrantReads } from "./GrantReads.ts"

/** At most `limit` grants, ascending, after the one of `afterId`. */
export interface GrantPage {
  readonly personId: PersonId
  readonly projectId: ProjectId
  readonly limit: number
  readonly afterId: string | null
}

export const listing = Effect.fnUntraced(function* (reads: GrantReads) {
  const { sql } = yield* Database
  const roles = yield* Roles

  return Effect.fn("ServiceGrants.list")(function* ({ afterId, limit, personId, projectId }: GrantPage) {
    const standing = yield* roles.toProject(personId, projectId, "none")
    if (!standing.owner && !standing.operator) yield* administers(standing)
    return yield* reads.views(sql`g.project_id = ${projectId} and (${afterId}::uuid is null or g.id > ${afterId}::uuid)
      order by g.id limit ${limit}`)
  })
})
