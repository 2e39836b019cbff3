/**
 * Accepts an invitation by its link: the person who has the mailed address, verified, is admitted; any other holder of
 * the link waits for an administrator.
 */
import { Clock, Effect } from "effect"
import type { PersonId } from "../../../schemas/BrandedIds.ts"
import { NotFound } from "../../../schemas/problems/HttpProblems.ts"
import { InvalidState, InvalidToken, RequestExists } from "../../../schemas/problems/IdentityProblems.ts"
import { Database } from "../../platform/database/Database.ts"
import { answerTo, fence, load, type Question, unchanged } from "../../platform/database/FencedCommand.ts"
import { heldMeanwhile, isHeld, whileOpen } from "../../platform/database/Installation.ts"
import { sameAddress } from "../../platform/mail/MailAddress.ts"
import { OneTimeTokens } from "../../platform/security/OneTimeTokens.ts"
import { type NewestReview, openedOf, PolicyReviews, reviewIn } from "../../requests/PolicyReviews.ts"
import { newestReview, type RequestRow, requestRows, stateAt } from "../../requests/RequestRows.ts"
import { recipientOf } from "../Requests/InvitationDelivery.ts"
import { admission, admissionColumns, type AdmissionState } from "./Admission.ts"
import { recording } from "./Records.ts"

export interface Acceptance {
  readonly personId: PersonId
  readonly token: string
}

interface Holder {
  /** The caller, or the person into whom the caller was merged. */
  readonly id: PersonId
  readonly email: string | null
  readonly email_verified: boolean
}

/** The columns of the request are null where no request has the token. */
interface Loaded extends RequestRow, NewestReview, AdmissionState {
  readonly holder: string
  readonly held: boolean
  /** The persons who signed the invitation. */
  readonly signed: ReadonlyArray<PersonId>
}

/** Returns the caller's canonical id, and whether the invitation went to an address of the caller. */
const decide = Effect.fnUntraced(function* (loaded: Loaded, personId: PersonId, now: number) {
  const [holder] = JSON.parse(loaded.holder) as ReadonlyArray<Holder>
  if (holder === undefined) return yield* new InvalidToken()
  if (loaded.held) return yield* heldMeanwhile()
  if (loaded.id === null) return yield* new NotFound()
  const state = stateAt(loaded, now)
  if (state !== "invited") return yield* new InvalidState({ state, allowed: ["invited"] })
  const { email, email_verified, id } = holder
  const invited = email_verified && email !== null && sameAddress(email, recipientOf(loaded))
  if (!invited && loaded.review_state === "open" && loaded.review_author !== personId) {
    return yield* new RequestExists({
      detail: "Another holder of this link waits for an administrator already. The invited person can still accept.",
    })
  }
  return { personId: id, invited }
})

export const accepting = Effect.gen(function* () {
  const { sql } = yield* Database
  const reviews = yield* PolicyReviews
  const tokens = yield* OneTimeTokens
  const recorded = yield* recording
  const admit = yield* admission
  const { change, columns } = requestRows(sql)

  const holderRow = (personId: PersonId): Question => ({
    rows: sql`select coalesce(merged_into, id) as id, email, email_verified from people
      where id = ${personId} and status = 'active' and not removed`,
    lock: sql`for share`,
  })

  const read = (personId: PersonId, token: string) =>
    load<Loaded>(
      sql,
      sql`
      select ${columns}, v.*, ${answerTo(sql, holderRow(personId))} as holder, ${isHeld(sql)} as held,
        ${admissionColumns(sql, sql`r.institution_id`, sql`${personId}`)},
        array(
          select a.person_id from policy_approvals a join policy_reviews s on s.id = a.review_id
          where s.request_id = r.id and s.kind = 'enrollment' and s.state = 'applied') as signed
      from (select) always left join requests r on r.token_hash = ${tokens.hash(token)} and r.kind = 'enrollment'
      ${newestReview(sql)}`,
    )

  /** Opens the review of a person who holds the link of another person's invitation, or returns the open one. */
  const claim = Effect.fnUntraced(function* (row: Loaded, personId: PersonId) {
    if (row.review_state === "open") return { version: row.revision, review: reviewIn(row)! }
    const claimed = yield* change(row, { personId })
    const of = { kind: "enrollment_claim", author: personId, reason: row.reason } as const
    const review = yield* reviews.open(claimed, ["administrator"], of)
    yield* recorded(claimed, "claimed", personId)
    return { version: claimed.revision, review }
  })

  return Effect.fn("Enrollments.accept")(function* ({ personId, token }: Acceptance) {
    const row = yield* read(personId, token)
    const { invited, personId: canonical } = yield* decide(row, personId, yield* Clock.currentTimeMillis)
    yield* fence(sql, unchanged(sql, holderRow(personId), row.holder), whileOpen(sql))
    const about = { enrollment_id: row.id, institution_id: row.institution_id! }
    if (!invited) {
      const { review, version } = yield* claim(row, personId)
      return { ...about, state: "invited" as const, membership: null, version, policy_review: openedOf(review) }
    }
    const by = { personId: canonical, approvedBy: row.signed, signedAt: row.decided_at! }
    const { resultId, role } = yield* admit.seat(row, row, by)
    yield* reviews.close(row)
    const { revision } = yield* admit.accept(row, personId, resultId, personId)
    const membership = { role, state: "active" as const }
    return { ...about, state: "accepted" as const, membership, version: revision, policy_review: null }
  })
})
