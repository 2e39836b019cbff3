/**
 * Carries out an invitation after its last signature: sends it, or admits the person who waited for an administrator.
 */
import { Clock, Effect } from "effect"
import type { PersonId } from "../../../schemas/BrandedIds.ts"
import { Database } from "../../platform/database/Database.ts"
import { answerTo, fence, load, unchanged } from "../../platform/database/FencedCommand.ts"
import { parse } from "../../platform/mail/MailAddress.ts"
import { Mails } from "../../platform/mail/Mails.ts"
import { OneTimeTokens } from "../../platform/security/OneTimeTokens.ts"
import type { Decision } from "../../requests/PolicyReviews.ts"
import { invitationKind, invitationToken } from "../../requests/RequestMail.ts"
import { invitationWindow, requestRows } from "../../requests/RequestRows.ts"
import { activeIn, activeRow, notActive } from "../Requests/ActivePerson.ts"
import { recipientOf } from "../Requests/InvitationDelivery.ts"
import { admission, admissionColumns, type AdmissionState } from "./Admission.ts"
import { recording } from "./Records.ts"

interface Loaded extends AdmissionState {
  readonly active: string
}

export const carryingOut = Effect.gen(function* () {
  const { sql } = yield* Database
  const mails = yield* Mails
  const tokens = yield* OneTimeTokens
  const recorded = yield* recording
  const admit = yield* admission
  const { change } = requestRows(sql)

  const send = Effect.fnUntraced(function* ({ request }: Decision, by: PersonId) {
    const recipient = recipientOf(request)
    // A recipient that is no address cannot be mailed: the invitation stays held until it expires.
    if (parse(recipient) === null) return
    const token = tokens.issue(invitationToken, request.id)
    const [mailId] = yield* mails.add({ kind: invitationKind, subjectId: request.id, recipient, args: {} })
    const expiresAt = new Date((yield* Clock.currentTimeMillis) + invitationWindow)
    const invited = yield* change(request, { state: "invited", expiresAt, mailId: mailId!, token })
    yield* recorded(invited, "invited", by)
  })

  const letIn = Effect.fnUntraced(function* ({ approvedBy, request, review }: Decision, by: PersonId) {
    const person = activeRow(sql, review.author)
    const loaded = yield* load<Loaded>(
      sql,
      sql`select ${answerTo(sql, person)} as active, ${
        admissionColumns(sql, sql`${request.institution_id}`, sql`${review.author}`)
      }`,
    )
    const claimant = activeIn(loaded.active)
    if (claimant === null) return yield* notActive()
    yield* fence(sql, unchanged(sql, person, loaded.active))
    // The invitation's signers meant another person, so only the administrator's decision now counts.
    const signedAt = new Date(yield* Clock.currentTimeMillis)
    const { resultId } = yield* admit.seat(request, loaded, { personId: claimant.id, approvedBy, signedAt })
    yield* admit.accept(request, claimant.id, resultId, by)
  })

  return Effect.fn("Enrollments.carryOut")(function* (decision: Decision) {
    const by = decision.approvedBy.at(-1)!
    yield* decision.review.kind === "enrollment_claim" ? letIn(decision, by) : send(decision, by)
  })
})
