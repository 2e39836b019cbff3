/** A person who may invite revokes an invitation, until it is accepted. */
import { Clock, Effect } from "effect"
import type { InstitutionId, PersonId, RequestId } from "../../../schemas/BrandedIds.ts"
import { NotFound } from "../../../schemas/problems/HttpProblems.ts"
import { InvalidState } from "../../../schemas/problems/IdentityProblems.ts"
import { isUuid } from "../../../schemas/Wire.ts"
import { needs, standingFrom, standingIn } from "../../people/Roles.ts"
import { Database } from "../../platform/database/Database.ts"
import { answerTo, fence, load, unchanged } from "../../platform/database/FencedCommand.ts"
import { type NewestReview, PolicyReviews, reviewIn } from "../../requests/PolicyReviews.ts"
import { newestReview, type RequestRow, requestRows, stateAt } from "../../requests/RequestRows.ts"
import type { MailRow } from "../Requests/InvitationDelivery.ts"
import { recording, viewOf } from "./Records.ts"

export interface Revocation {
  readonly personId: PersonId
  readonly institutionId: InstitutionId
  readonly enrollmentId: RequestId
  readonly reason: string
}

/** The columns of the request are null where the institution has no invitation with this id. */
interface Loaded extends RequestRow, NewestReview {
  readonly standing: string
  readonly mail_state: MailRow["state"] | null
}

const decide = Effect.fnUntraced(function* (loaded: Loaded, { institutionId, personId }: Revocation, now: number) {
  const standing = yield* standingFrom(loaded.standing, personId, institutionId)
  if (loaded.id === null) return yield* new NotFound()
  yield* needs(standing, "sponsor", "administrator")
  const state = stateAt(loaded, now)
  if (state !== "held" && state !== "invited") {
    return yield* new InvalidState({ state, allowed: ["held", "invited"] })
  }
})

export const revoking = Effect.gen(function* () {
  const { sql } = yield* Database
  const reviews = yield* PolicyReviews
  const recorded = yield* recording
  const { change, columns } = requestRows(sql)

  return Effect.fn("Enrollments.revoke")(function* (asked: Revocation) {
    const { enrollmentId, institutionId, personId, reason } = asked
    const now = yield* Clock.currentTimeMillis
    const standing = standingIn(sql, personId, institutionId, new Date(now))
    const row = yield* load<Loaded>(
      sql,
      sql`
      select ${columns}, v.*, m.state as mail_state, ${answerTo(sql, standing)} as standing
      from (select) always
      left join requests r on r.id = ${isUuid(enrollmentId) ? enrollmentId : null}::uuid and r.kind = 'enrollment'
        and r.institution_id = ${institutionId}
      left join mails m on m.id = r.mail_id
      ${newestReview(sql)}`,
    )

    yield* decide(row, asked, now)
    yield* fence(sql, unchanged(sql, standing, row.standing))
    yield* reviews.close(row)
    const revoked = yield* change(row, { state: "revoked", by: personId })
    yield* recorded(revoked, "revoked", personId, { reason })
    return viewOf(revoked, reviewIn(row), row.mail_state === null ? null : { state: row.mail_state })
  })
})
