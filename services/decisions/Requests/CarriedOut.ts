/**
 * Carries out a request for an institution, Access, its revocation, or a role, after its last signature. Each loads what it decides on
 * and adds fences, as commands of two round trips do (FencedCommand.ts); order of locks: person, institution,
 * memberships, project, request.
 */
import { Effect } from "effect"
import { Database } from "../../platform/database/Database.ts"
import { Timers } from "../../platform/database/Timers.ts"
import type { Decision } from "../../requests/PolicyReviews.ts"
import { type RequestChange, requestRows } from "../../requests/RequestRows.ts"
import { changingRole } from "./ChangeRequestedRole.ts"
import { founding } from "./FoundInstitution.ts"
import { grantingAccess } from "./GrantRequestedAccess.ts"
import { revokingAccess } from "./RevokeRequestedAccess.ts"

export const carryingOut = Effect.gen(function* () {
  const { sql } = yield* Database
  const timers = yield* Timers
  const rows = requestRows(sql)
  const found = yield* founding
  const grant = yield* grantingAccess
  const change = yield* changingRole
  const revoke = yield* revokingAccess

  return Effect.fn("Requests.carryOut")(function* (decision: Decision) {
    const { request } = decision
    const to: RequestChange = yield* request.kind === "organization"
      ? found(decision)
      : request.kind === "access"
      ? grant(decision)
      : request.kind === "access_revocation"
      ? revoke(decision)
      : change(decision)
    const { id } = yield* rows.change(request, to)
    yield* timers.set(id, [])
  })
})
