/** A Sponsor or an administrator writes an invitation, which waits for the other role's signature. */
import { Clock, Effect } from "effect"
import { type InstitutionId, type PersonId, RequestId } from "../../../schemas/BrandedIds.ts"
import type { EnrollmentCreate } from "../../../schemas/identity/RequestBodies.ts"
import { needs, type Standing, standingFrom, standingIn } from "../../people/Roles.ts"
import { Database } from "../../platform/database/Database.ts"
import { answerTo, fence, load, unchanged } from "../../platform/database/FencedCommand.ts"
import { Ids } from "../../platform/Ids.ts"
import { PolicyReviews } from "../../requests/PolicyReviews.ts"
import { invitationWindow, newRequest, requestOf } from "../../requests/RequestRows.ts"
import { recording, viewOf } from "./Records.ts"

export type Invitation = EnrollmentCreate & { readonly personId: PersonId; readonly institutionId: InstitutionId }

/** Writes a new invitation and opens its review, for a person whose role the caller has checked and fenced. */
export const inviting = Effect.gen(function* () {
  const { sql } = yield* Database
  const ids = yield* Ids
  const reviews = yield* PolicyReviews
  const recorded = yield* recording
  const added = newRequest(sql)

  return Effect.fnUntraced(function* (
    standing: Standing,
    { reason, recipient }: EnrollmentCreate,
    details: Readonly<Record<string, string>> = {},
  ) {
    const { institutionId, personId } = standing
    const now = new Date(yield* Clock.currentTimeMillis)
    const row = requestOf({
      id: RequestId.make(yield* ids.next),
      kind: "enrollment",
      state: "held",
      author: personId,
      institutionId,
      fields: { recipient },
      reason,
      expiresAt: new Date(now.getTime() + invitationWindow),
    }, now)

    yield* fence(sql, added(row))
    // A person with both roles writes as a Sponsor: an operator can stand in for a missing administrator only.
    const review = yield* reviews.open(row, [standing.sponsor ? "administrator" : "sponsor"])
    yield* recorded(row, "submitted", personId, details)
    return viewOf(row, review)
  })
})

export const enrolling = Effect.gen(function* () {
  const { sql } = yield* Database
  const invite = yield* inviting

  return Effect.fn("Enrollments.enroll")(function* ({ institutionId, personId, ...asked }: Invitation) {
    const held = standingIn(sql, personId, institutionId, new Date(yield* Clock.currentTimeMillis))
    const loaded = yield* load<{ held: string }>(sql, sql`select ${answerTo(sql, held)} as held`)

    const standing = yield* standingFrom(loaded.held, personId, institutionId)
    yield* needs(standing, "sponsor", "administrator")
    yield* fence(sql, unchanged(sql, held, loaded.held))
    return yield* invite(standing, asked)
  })
})
