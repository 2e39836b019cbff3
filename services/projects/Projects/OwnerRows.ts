/** The rows of a project's owners. A command that changes one also appends its event for products (Owners.ts). */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { PersonId, ProjectId } from "../../../schemas/BrandedIds.ts"
import { Ids } from "../../platform/Ids.ts"

export const ownerRows = (sql: PgClient.PgClient) => ({
  /** Makes a person an owner, or ends that; returns the id of the row. */
  set: Effect.fnUntraced(function* (
    projectId: ProjectId,
    personId: PersonId,
    active: boolean,
    madeBy: PersonId,
  ): Effect.fn.Return<string, SqlError.SqlError> {
    const at = new Date(yield* Clock.currentTimeMillis)
    const [row] = yield* sql<{ id: string }>`
      insert into project_owners as t (id, project_id, person_id, active, active_decided, since, made_by, created_at,
        updated_at)
      values (${yield* (yield* Ids).next}, ${projectId}, ${personId}, ${active}, true, ${at}, ${madeBy}, ${at}, ${at})
      on conflict (project_id, person_id) where not removed do update
      set active = excluded.active, active_decided = true, since = excluded.since, made_by = excluded.made_by,
        approved_by = '{}', revision = t.revision + 1, created_at = excluded.created_at,
        updated_at = excluded.updated_at
      returning id`
    return row!.id
  }),

  /** The present and former owners of a project; `effective`: whether the ownership is effective. */
  list: (projectId: ProjectId) =>
    sql<{ person_id: PersonId; active: boolean; since: Date | null; effective: boolean }>`
      select o.person_id, o.active, o.since,
        o.active and p.status = 'active' and not p.removed and p.merged_into is null and not p.auditor as effective
      from project_owners o join people p on p.id = o.person_id
      where o.project_id = ${projectId} and not o.removed order by o.person_id collate "C"`,
})
