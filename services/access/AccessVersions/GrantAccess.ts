/** Grants a new Access: its row, its first version and its grant Event. */
import { Clock, Effect } from "effect"
import { EventLog } from "../../lifecycle/EventLog.ts"
import { Database } from "../../platform/database/Database.ts"
import { fence, newRow } from "../../platform/database/FencedCommand.ts"
import { insertion, write } from "../../platform/database/UnitOfWork.ts"
import { eventsOfVersion } from "./VersionEvents.ts"
import { type AccessDecision, type Holder, versionColumns, versionOf } from "./VersionRows.ts"

export const granting = Effect.gen(function* () {
  const { sql } = yield* Database
  const eventLog = yield* EventLog

  const entered = newRow(sql, "access", {
    id: "text",
    institution_id: "text",
    project_id: "text",
    person_id: "text",
    role: "text",
    state: "text",
    state_decided: "boolean",
    access_version: "integer",
    ends_at: "timestamptz",
    made_by: "text",
    approved_by: "text[]",
    created_at: "timestamptz",
    updated_at: "timestamptz",
  })
  const firstVersions = insertion(sql, "access_versions", versionColumns)

  return Effect.fn("AccessVersions.grant")(function* (decision: AccessDecision, holder: Holder) {
    const { accessId, endsAt = null, projectId } = decision
    const person = { ...holder, canonical: holder.id, status: "active", removed: false } as const
    const statusEvent = (yield* eventLog.toldDisabled(projectId, holder)) ? "account-enabled" : null
    const [eventId] = yield* eventLog.append(
      ...eventsOfVersion(accessId, null, decision, person, decision, statusEvent),
    )
    const row = versionOf(accessId, 1, decision, decision, eventId!, yield* Clock.currentTimeMillis)
    const { access_id, digest, event_id: _, ...made } = row
    yield* fence(
      sql,
      entered({
        ...made,
        id: access_id,
        state_decided: true,
        ends_at: endsAt?.toISOString() ?? null,
        updated_at: made.created_at,
      }),
    )
    yield* write(sql, firstVersions, [row])
    return { accessVersion: 1, eventId: eventId!, digest }
  })
})
