/**
 * Checks whether a service may use a capability on a project's lifecycle now: it needs an approved grant for this
 * project, its environment and this capability that has not ended. Checked at each call, so that a revocation holds
 * from its commit.
 */
import { Clock, Effect } from "effect"
import type { ProjectId } from "../../schemas/BrandedIds.ts"
import { NotFound } from "../../schemas/problems/HttpProblems.ts"
import { RoleRequired } from "../../schemas/problems/IdentityProblems.ts"
import type { Capability } from "../../schemas/identity/ServiceGrant.ts"
import { Database } from "../platform/database/Database.ts"

/** A service, as its token names it. */
export interface Receiver {
  readonly issuer: string
  readonly clientId: string
}

/** The service that asks, and the project. */
export interface Asking extends Receiver {
  readonly projectId: ProjectId
}

export const grants = Effect.gen(function* () {
  const { sql } = yield* Database

  /** SQL of whether the grant `g` of the project `p` is effective for `capability` at `now`. */
  const stands = (capability: Capability, now: Date) =>
    sql`(g.state = 'approved' and g.environment = p.environment and p.state <> 'withdrawn'
      and coalesce(g.expires_at > ${now}, true) and ${capability} = any(g.capabilities))`

  /** SQL of one row (`stands`), or of no row for a service that never had a grant; a part for larger statements. */
  const asked = (asking: Asking, capability: Capability, now: Date) =>
    sql`select bool_or(${stands(capability, now)}) as stands
      from service_grants g join projects p on p.id = g.project_id and not p.removed
      where g.project_id = ${asking.projectId} and g.service_issuer = ${asking.issuer}
        and g.service_id = ${asking.clientId} and (g.approved_at is not null)
      having count(*) > 0`

  /**
   * The row of `asked`; fails with NotFound where there is none, with RoleRequired where its grant is not effective.
   */
  const admitted = <A extends { readonly stands: boolean }>(
    rows: ReadonlyArray<A>,
  ): Effect.Effect<A, NotFound | RoleRequired> => {
    const [row] = rows
    if (row === undefined) return Effect.fail(new NotFound())
    return row.stands ? Effect.succeed(row) : Effect.fail(
      new RoleRequired({
        detail:
          "This needs an approved service grant with the capability, of the project's environment, that has not ended.",
      }),
    )
  }

  /**
   * Fails with NotFound for a service that never had a grant, with RoleRequired where no grant of it allows this now.
   */
  const granted = Effect.fnUntraced(function* (asking: Asking, capability: Capability) {
    const now = new Date(yield* Clock.currentTimeMillis)
    yield* admitted(yield* sql<{ stands: boolean }>`${asked(asking, capability, now)}`)
  })

  /** The projects for which a service may do this now, ids ascending. */
  const projectsOf = Effect.fnUntraced(function* ({ clientId, issuer }: Receiver, capability: Capability) {
    const now = new Date(yield* Clock.currentTimeMillis)
    const rows = yield* sql<{ id: ProjectId }>`
      select distinct p.id from service_grants g join projects p on p.id = g.project_id and not p.removed
      where g.service_issuer = ${issuer} and g.service_id = ${clientId} and ${stands(capability, now)}
      order by p.id`
    return rows.map(({ id }) => id)
  })

  return { admitted, asked, granted, projectsOf, stands }
})
