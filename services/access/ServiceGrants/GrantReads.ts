/** Reads and locks service grants, with their projects. */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import type { Statement } from "effect/sql"
import type { InstitutionId, PersonId, ProjectId, ServiceGrantId } from "../../../schemas/BrandedIds.ts"
import { NotFound } from "../../../schemas/problems/HttpProblems.ts"
import { isUuid } from "../../../schemas/Wire.ts"
import { deliveryColumns } from "../../lifecycle/DeliveryStatus.ts"
import { type GrantRow, type ProjectRow, viewOf } from "./GrantRows.ts"

/** The caller of a command, and its grant. */
export interface OnGrant {
  readonly personId: PersonId
  readonly projectId: ProjectId
  readonly grantId: ServiceGrantId
  readonly reason: string
}

/** A grant in force, and the institution of its project. */
export interface LiveGrant extends GrantRow {
  readonly institution_id: InstitutionId
}

/** `isKnown`: whether tokens of an issuer are accepted. */
export const grantReads = (sql: PgClient.PgClient, isKnown: (issuer: string) => boolean) => {
  const delivery = deliveryColumns(sql)
  const columns = sql.literal(`g.id::text as id, g.project_id, g.service_id, g.service_issuer, g.capabilities,
    g.environment, g.state, g.revision, g.reason, g.proposed_by, g.proposed_at, g.approved_by, g.approved_at,
    g.approval_event_id::text as decision_event_id, g.revoked_by, g.revoked_at, g.expires_at`)

  /** The views of the grants that meet a condition on `g`. */
  const views = Effect.fnUntraced(function* (where: Statement.Fragment) {
    const now = yield* Clock.currentTimeMillis
    const rows = yield* sql<Parameters<typeof viewOf>[0]>`
      select ${columns}, ${delivery.columns}, p.installed_version,
        (p.removed or p.state = 'withdrawn' or p.environment <> g.environment) as dead,
        exists (
          select from lifecycle_streams t
          where (t.project_id, t.service_issuer, t.service_id) = (g.project_id, g.service_issuer, g.service_id)
            and t.delivery = 'push' and t.status = 'enabled') as pushed
      from service_grants g join projects p on p.id = g.project_id
      left join lifecycle_told e on e.id = g.approval_event_id
      ${delivery.joins}
      where ${where}`
    return rows.map((row) => viewOf(row, isKnown(row.service_issuer), now))
  })

  /** The view of a grant that exists. */
  const view = (id: ServiceGrantId) => Effect.map(views(sql`g.id = ${id}::uuid`), ([grant]) => grant!)

  /** The project, which the caller's standing has locked. */
  const projectOf = Effect.fnUntraced(function* (projectId: ProjectId) {
    const [project] = yield* sql<ProjectRow>`
      select state, rollout, environment, institution_id from projects where id = ${projectId} and not removed`
    return project ?? (yield* new NotFound())
  })

  /** Locks the grant of a command; NotFound where the project has no such grant. */
  const lock = Effect.fnUntraced(function* ({ grantId, projectId }: Pick<OnGrant, "grantId" | "projectId">) {
    if (!isUuid(grantId)) return yield* new NotFound()
    const [grant] = yield* sql<GrantRow>`
      select ${columns} from service_grants g
      where g.id = ${grantId}::uuid and g.project_id = ${projectId} for update`
    return grant ?? (yield* new NotFound())
  })

  /** Locks the grants in force that meet a condition on `g`, in the order of their ids. */
  const lockLive = (where: Statement.Fragment) =>
    sql<LiveGrant>`
      select ${columns}, p.institution_id from service_grants g join projects p on p.id = g.project_id
      where ${where} and g.state <> 'revoked' order by g.id for update of g`

  return { views, view, projectOf, lock, lockLive }
}
export type GrantReads = ReturnType<typeof grantReads>
