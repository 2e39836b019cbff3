/**
 * The minimum cursor of a consumer. A cursor before it is answered with `cursor_expired`, and the consumer takes a
 * snapshot: the consumer was too late for a new key, a compromised key had signed events that it has, or the next
 * events were signed by a key that verifies no longer.
 */
import type { PgClient } from "@effect/sql-pg"
import type { Statement } from "effect/sql"
import type { ProjectId } from "../../../schemas/BrandedIds.ts"

/**
 * SQL of a query for the minimum cursor of a consumer (`<issuer> <client>`): no row, or one of floor_epoch and
 * floor_position.
 */
export const minimumCursorOf = (
  sql: PgClient.PgClient,
  projectId: ProjectId | Statement.Fragment,
  consumer: string | Statement.Fragment,
) =>
  sql`
    select f.epoch as floor_epoch, f.position as floor_position from (
      select a.epoch, a.position from lifecycle_key_places a where a.project_id = ${projectId} and a.anew
      union all
      select n.epoch, n.position - 1
      from (
        select epoch, position, lag(kid) over (order by epoch, position) as kid
        from lifecycle_key_places where project_id = ${projectId}
      ) n join signing_keys k on k.kid = n.kid and k.state in ('retired', 'compromised')
      union all
      -- The project's key was stolen: until the project has switched, its products get snapshots only.
      select h.epoch, h.position from lifecycle_project_keys p
      join signing_keys k on k.kid = p.kid and k.state = 'compromised'
      join lifecycle_heads h on h.project_id = p.project_id
      where p.project_id = ${projectId}
      union all
      select c.floor_epoch, c.floor_position from lifecycle_consumers c
      where c.project_id = ${projectId} and c.consumer = ${consumer} and c.floor_epoch is not null
    ) f order by f.epoch desc, f.position desc limit 1`
