/**
 * Whether a service may do something about a project's lifecycle now: an approved grant that stands, for this project,
 * its environment and this capability. Asked at each call, so that a revoked one is refused from its commit on.
 */
import { Clock, Effect } from "effect"
import { NotFound } from "../../schemas/problems/Floor.ts"
import { RoleRequired } from "../../schemas/problems/Identity.ts"
import type { Capability } from "../../schemas/identity/ServiceGrants.ts"
import { Database } from "../platform/database/Database.ts"

/** A service, as its token names it. */
export interface Receiver {
  readonly issuer: string
  readonly clientId: string
}

/** Who asks, about which project. */
export interface Asking extends Receiver {
  readonly projectId: string
}

export const grants = Effect.gen(function* () {
  const { sql } = yield* Database

  /** SQL of whether the grant `g` of the project `p` is worth `capability` at `now`. */
  const stands = (capability: Capability, now: Date) =>
    sql`(g.state = 'approved' and g.environment = p.environment and p.state <> 'withdrawn'
      and coalesce(g.expires_at > ${now}, true) and ${capability} = any(g.capabilities))`

  /** SQL of one row (`stands`), or of none for who never had a grant: for statements that ask for more at once. */
  const asked = (asking: Asking, capability: Capability, now: Date) =>
    sql`select bool_or(${stands(capability, now)}) as stands
      from service_grants g join projects p on p.id = g.project_id and not p.removed
      where g.project_id = ${asking.projectId} and g.service_issuer = ${asking.issuer}
        and g.service_id = ${asking.clientId} and (g.approved_at is not null)
      having count(*) > 0`

  /** The first of the rows that came of `asked`; fails with NotFound where there is none, else with RoleRequired. */
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

  /** Fails with NotFound for who never had a grant, with RoleRequired for whose grant does not say this, or no more. */
  const granted = Effect.fnUntraced(function* (asking: Asking, capability: Capability) {
    const now = new Date(yield* Clock.currentTimeMillis)
    yield* admitted(yield* sql<{ stands: boolean }>`${asked(asking, capability, now)}`)
  })

  /** The projects for which a service may do this now, ids ascending. */
  const projectsOf = Effect.fnUntraced(function* ({ clientId, issuer }: Receiver, capability: Capability) {
    const now = new Date(yield* Clock.currentTimeMillis)
    const rows = yield* sql<{ id: string }>`
      select distinct p.id from service_grants g join projects p on p.id = g.project_id and not p.removed
      where g.service_issuer = ${issuer} and g.service_id = ${clientId} and ${stands(capability, now)}
      order by p.id`
    return rows.map(({ id }) => id)
  })

  return { admitted, asked, granted, projectsOf, stands }
})
