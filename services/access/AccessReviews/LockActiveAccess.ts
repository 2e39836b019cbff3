/** Loads the Access of a review, at exactly one version, with its grant Event. */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { Statement } from "effect/sql"
import type { AccessId } from "../../../schemas/BrandedIds.ts"
import { NotFound } from "../../../schemas/problems/HttpProblems.ts"
import { AccessNotActive, AccessVersionSuperseded } from "../../../schemas/problems/IdentityProblems.ts"
import type { Question } from "../../platform/database/FencedCommand.ts"
import type { AccessRow } from "./Rows.ts"

export type VersionFault = AccessNotActive | AccessVersionSuperseded

/** The Access as a question of at most one row; each argument is SQL of a value. */
export const accessAt = (
  sql: PgClient.PgClient,
  institutionId: Statement.Fragment,
  accessId: Statement.Fragment,
  version: Statement.Fragment,
): Question => ({
  rows: sql`
    select case when a.removed then 'revoked' else a.state end as state, a.access_version, a.project_id,
      a.person_id, v.digest as access_digest, e.id::text as event_id, e.position, e.digest
    from access a
    left join access_versions v on v.access_id = a.id and v.access_version = ${version}
    left join lifecycle_told e on e.id = v.event_id
    where a.id = ${accessId} and a.institution_id = ${institutionId}`,
  lock: sql`for share of a`,
})

/** The Access in an answer to `accessAt`; fails where it is not active at this version. */
export const activeAt = Effect.fnUntraced(function* (answer: string, accessId: AccessId, version: number) {
  const [access] = JSON.parse(answer) as ReadonlyArray<AccessRow>
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
  return access
})
