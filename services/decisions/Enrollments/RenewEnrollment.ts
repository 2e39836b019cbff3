/**
 * A person who may invite asks for an invitation again: one that was revoked or has expired, or whose mail failed. The new
 * one is a request of its own with a review of its own, to the recipient that the old one names: no answer shows the
 * address, so the person could not repeat it.
 */
import { Clock, Effect } from "effect"
import { InvalidState } from "../../../schemas/problems/IdentityProblems.ts"
import { NotFound } from "../../../schemas/problems/HttpProblems.ts"
import { isUuid } from "../../../schemas/Wire.ts"
import { needs, standingFrom, standingIn } from "../../people/Roles.ts"
import { Database } from "../../platform/database/Database.ts"
import { answerTo, fence, load, unchanged } from "../../platform/database/FencedCommand.ts"
import { parse } from "../../platform/mail/MailAddress.ts"
import { type NewestReview, PolicyReviews } from "../../requests/PolicyReviews.ts"
import { newestReview, type RequestRow, requestRows, stateAt } from "../../requests/RequestRows.ts"
import { deliveryOf, type MailRow, recipientOf } from "../Requests/InvitationDelivery.ts"
import { inviting } from "./Enroll.ts"
import { recording } from "./Records.ts"
import type { Revocation } from "./RevokeEnrollment.ts"

/** The columns of the request are null where the institution has no invitation with this id. */
interface Loaded extends RequestRow, NewestReview {
  readonly standing: string
  readonly mail_state: MailRow["state"] | null
}

/** Whether the invitation's mail failed for good; one whose outcome is unknown may have arrived. */
const hasFailed = (loaded: Loaded) =>
  loaded.mail_state !== null && deliveryOf(loaded, { state: loaded.mail_state }).state === "failed"

const decide = Effect.fnUntraced(function* (loaded: Loaded, { institutionId, personId }: Revocation, now: number) {
  const standing = yield* standingFrom(loaded.standing, personId, institutionId)
  if (loaded.id === null) return yield* new NotFound()
  yield* needs(standing, "sponsor", "administrator")
  const state = stateAt(loaded, now)
  const unsent = state === "invited" && hasFailed(loaded)
  if (state !== "expired" && state !== "revoked" && !unsent) {
    return yield* new InvalidState({ state, allowed: ["expired", "revoked"] })
  }
  if (parse(recipientOf(loaded)) === null) {
    return yield* new InvalidState({
      state: "recipient_invalid",
      allowed: ["expired", "revoked"],
      detail: "The invitation's recipient is no address: write a new invitation to the right one.",
    })
  }
  return { standing, unsent }
})

export const renewing = Effect.gen(function* () {
  const { sql } = yield* Database
  const invite = yield* inviting
  const reviews = yield* PolicyReviews
  const recorded = yield* recording
  const { change, columns } = requestRows(sql)

  return Effect.fn("Enrollments.renew")(function* (asked: Revocation) {
    const { enrollmentId, institutionId, personId, reason } = asked
    const now = yield* Clock.currentTimeMillis
    const held = standingIn(sql, personId, institutionId, new Date(now))
    const row = yield* load<Loaded>(
      sql,
      sql`
      select ${columns}, v.*, m.state as mail_state, ${answerTo(sql, held)} as standing
      from (select) always
      left join requests r on r.id = ${isUuid(enrollmentId) ? enrollmentId : null}::uuid and r.kind = 'enrollment'
        and r.institution_id = ${institutionId}
      left join mails m on m.id = r.mail_id
      ${newestReview(sql)}`,
    )

    const { standing, unsent } = yield* decide(row, asked, now)
    yield* fence(sql, unchanged(sql, held, row.standing))
    // Of two invitations that were mailed to one address, the older link must not work beside the newer one.
    if (unsent) {
      yield* reviews.close(row)
      yield* recorded(yield* change(row, { state: "revoked", by: personId }), "revoked", personId, { reason })
    }
    return yield* invite(standing, { recipient: recipientOf(row), reason }, { renews: row.id })
  })
})
