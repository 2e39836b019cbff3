/** Sets the role and state of a member, as an approved request asks. */
import { Effect } from "effect"
import type * as Wire from "../../../schemas/identity/RequestBodies.ts"
import { memberships } from "../../people/Memberships.ts"
import { Database } from "../../platform/database/Database.ts"
import { Outbox } from "../../platform/messaging/Outbox.ts"
import type { Decision } from "../../requests/PolicyReviews.ts"

export const changingRole = Effect.gen(function* () {
  const { sql } = yield* Database
  const { seat } = memberships(sql, yield* Outbox)

  return Effect.fnUntraced(function* ({ approvedBy, request }: Decision) {
    const { role, state } = request.fields as Pick<Wire.MembershipChange, "role" | "state">
    const to = { institutionId: request.institution_id!, personId: request.person_id!, role, state }
    const resultId = yield* seat({ ...to, madeBy: request.author, approvedBy })
    return { state: "approved", resultId } as const
  })
})
