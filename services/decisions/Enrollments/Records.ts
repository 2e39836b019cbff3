/** The audit records and timers of an invitation, and its view for those who may invite. */
import { Clock, Effect } from "effect"
import type { PersonId } from "../../../schemas/BrandedIds.ts"
import type { Enrollment } from "../../../schemas/identity/RequestBodies.ts"
import { Audit } from "../../platform/observability/Audit.ts"
import { Timers } from "../../platform/database/Timers.ts"
import { filedOf, type ReviewName, stamp } from "../../requests/PolicyReviews.ts"
import { type RequestRow, timersOf } from "../../requests/RequestRows.ts"
import { masked } from "../../platform/mail/MailAddress.ts"
import { deliveryOf, type MailRow, recipientOf } from "../Requests/InvitationDelivery.ts"

/** Records a person's change of an invitation, and sets the invitation's timers. */
export const recording = Effect.gen(function* () {
  const audit = yield* Audit
  const timers = yield* Timers

  return Effect.fnUntraced(
    function* (row: RequestRow, action: string, personId: PersonId, more: Readonly<Record<string, string>> = {}) {
      yield* timers.set(row.id, timersOf(row, yield* Clock.currentTimeMillis))
      yield* audit.append({
        action: `enrollment.${action}`,
        actor: `person:${personId}`,
        subject: `request:${row.id}`,
        outcome: "done",
        decision: true,
        details: { institution: row.institution_id, ...more },
      })
    },
  )
})

export const viewOf = (row: RequestRow, review: ReviewName | null, mail: MailRow | null = null): Enrollment => ({
  enrollment_id: row.id,
  institution_id: row.institution_id!,
  recipient: masked(recipientOf(row)),
  reason: row.reason,
  delivery: deliveryOf(row, mail),
  expires_at: stamp(row.expires_at!),
  state: row.state as Enrollment["state"],
  ...filedOf(row, review),
})
