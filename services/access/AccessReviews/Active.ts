/** The Access that a review is about, as it stands. */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import { NotFound } from "../../../schemas/problems/Floor.ts"
import { AccessNotActive, AccessVersionSuperseded } from "../../../schemas/problems/Identity.ts"
import { Conflict } from "../../platform/Transact.ts"
import type { AccessRow } from "./Rows.ts"

export type VersionFault = AccessNotActive | AccessVersionSuperseded | Conflict

/** The Access at exactly this version, with its grant Event; locked against a change until the end. */
export const activeVersion = (sql: PgClient.PgClient) =>
  Effect.fnUntraced(function* (institutionId: string, accessId: string, version: number) {
    const [access] = yield* sql<AccessRow>`
      select case when a.removed then 'revoked' else a.state end as state, a.access_version, a.project_id,
        a.person_id, v.digest as access_digest, e.id::text as event_id, e.position, e.digest
      from access a
      left join access_versions v on v.access_id = a.id and v.access_version = ${version}
      left join lifecycle_told e on e.id = v.event_id
      where a.id = ${accessId} and a.institution_id = ${institutionId} for share of a`
    if (access === undefined) return yield* new NotFound()
    if (access.state !== "active") {
      return yield* new AccessNotActive({
        detail:
          `Access ${accessId} is ${access.state}, as version ${access.access_version}: only an active one is reviewed.`,
      })
    }
    if (access.access_version !== version) {
      return yield* new AccessVersionSuperseded({
        detail:
          `Access ${accessId} is at version ${access.access_version}, not ${version}: propose a review of that one.`,
      })
    }
    // A version that was made while its Access was waited for is seen by the next statement only.
    if (access.event_id === null) return yield* new Conflict()
    return access
  })
