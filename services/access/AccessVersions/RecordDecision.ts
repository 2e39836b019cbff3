/** Writes a decision that was made here: the Access, its version and its grant Event. */
import { Clock, Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { AccessId } from "../../../schemas/BrandedIds.ts"
import { persons } from "../../people/PersonAudience.ts"
import { Database } from "../../platform/database/Database.ts"
import type { InTransaction } from "../../platform/database/UnitOfWork.ts"
import type { AccessDecision, AccessVersion, Makers } from "./VersionRows.ts"

/** Writes the missing version of a locked Access; null where it has none and needs none yet. */
export type Settling = (
  accessId: AccessId,
  makers?: Makers,
) => Effect.Effect<AccessVersion | null, SqlError.SqlError, InTransaction>

export const recording = Effect.fnUntraced(function* (settle: Settling) {
  const { sql } = yield* Database
  const people = persons(sql)

  return Effect.fn("AccessVersions.record")(function* (decision: AccessDecision) {
    const [person] = yield* people.lock([decision.personId])
    if (person === undefined) return yield* Effect.die(new Error("Access of a person that is not known"))
    const now = new Date(yield* Clock.currentTimeMillis)
    const row = {
      id: decision.accessId,
      institution_id: decision.institutionId,
      project_id: decision.projectId,
      person_id: decision.personId,
      role: decision.role,
      state: decision.state,
      made_by: decision.madeBy,
      approved_by: decision.approvedBy,
    }
    yield* sql`
      insert into access as t (id, institution_id, project_id, person_id, role, state, state_decided, made_by,
        approved_by, updated_at, created_at)
      select id, institution_id, project_id, person_id, role, state, true, made_by, approved_by, ${now}, ${now}
      from jsonb_to_record(${sql.json(row)}) r(id text, institution_id text, project_id text, person_id text,
        role text, state text, made_by text, approved_by text[])
      on conflict (id) do update
      set institution_id = excluded.institution_id, project_id = excluded.project_id,
        person_id = excluded.person_id, role = excluded.role, state = excluded.state, state_decided = true,
        removed = false, revision = t.revision + 1,
        -- What was revoked and is granted again has no end of before, nor has what moved.
        ends_at = case when (excluded.state = 'revoked' or t.state = 'active')
          and (t.institution_id, t.project_id, canonical_person(t.person_id)) is not distinct from
            (excluded.institution_id, excluded.project_id, canonical_person(excluded.person_id)) then t.ends_at end,
        made_by = excluded.made_by, approved_by = excluded.approved_by, updated_at = excluded.updated_at
      where (t.institution_id, t.project_id, t.person_id, t.role, t.state, t.removed) is distinct from
        (excluded.institution_id, excluded.project_id, excluded.person_id, excluded.role, excluded.state, false)`
    const version = yield* settle(decision.accessId, decision)
    if (version === null) return yield* Effect.die(new Error("Access without a version"))
    const { accessVersion, digest, eventId } = version
    return { accessVersion, eventId, digest }
  })
})
