/** An independent administrator approves exactly the Sponsor's decision. */
import { Clock, Effect } from "effect"
import type { AccessId, AccessReviewId, InstitutionId, PersonId } from "../../../schemas/BrandedIds.ts"
import { NotFound } from "../../../schemas/problems/HttpProblems.ts"
import {
  AccessVersionSuperseded,
  type InsufficientUserAuthentication,
  InvalidState,
  PreconditionFailed,
} from "../../../schemas/problems/IdentityProblems.ts"
import { isUuid } from "../../../schemas/Wire.ts"
import { needs, Roles, standingFrom, standingIn } from "../../people/Roles.ts"
import { Database } from "../../platform/database/Database.ts"
import { answerTo, fence, load, one, unchanged } from "../../platform/database/FencedCommand.ts"
import { heldMeanwhile, isHeld } from "../../platform/database/Installation.ts"
import { addNotices } from "../../requests/PersonNotices.ts"
import { accessAt, activeAt } from "./LockActiveAccess.ts"
import { entriesOf, evidence, wholeChain } from "./Evidence.ts"
import { eventAppender, recording } from "./Records.ts"
import { type LoadedRow, receiptOf, reviewColumns, reviewedPerson } from "./Rows.ts"

/** A decision on one review. */
export interface ReviewDecision {
  readonly personId: PersonId
  readonly institutionId: InstitutionId
  readonly reviewId: AccessReviewId
  readonly reason: string
  /** Digests of the evidence that the decider may have seen (If-Match); undefined where the request names none. */
  readonly seen?: ReadonlyArray<string> | undefined
}

export interface Approval extends ReviewDecision {
  readonly stepUp: Effect.Effect<void, InsufficientUserAuthentication>
}

interface Loaded extends LoadedRow {
  readonly standing: string
  readonly access: string
  readonly independent: boolean
  readonly held: boolean
}

/** Fails where the evidence is not one that the decider has seen. */
export const mustBeSeen = ({ seen }: ReviewDecision, row: LoadedRow) =>
  seen === undefined || seen.includes(row.evidence_digest) ? Effect.void : Effect.fail(
    new PreconditionFailed({
      detail:
        `Review ${row.id} is ${row.state} and has newer evidence than If-Match names: read it again, and decide on that.`,
    }),
  )

const movedAway = (accessId: AccessId) =>
  new AccessVersionSuperseded({
    detail: `Access ${accessId} belongs to another institution by now: revoke this review.`,
  })

/** The approver is not independent of the proposer. */
class Dependent {
  readonly _tag = "Dependent"
}

/** Checks whether the approval is allowed; returns the review's evidence. The order of the checks is public. */
const decide = Effect.fnUntraced(
  function* (loaded: Loaded, { institutionId, personId, stepUp, ...decision }: Approval) {
    const standing = yield* standingFrom(loaded.standing, personId, institutionId)
    if (loaded.id === null) return yield* new NotFound()
    yield* needs(standing, "administrator")
    if (!loaded.independent) return yield* Effect.fail(new Dependent())
    if (loaded.held) return yield* heldMeanwhile()
    yield* stepUp
    yield* mustBeSeen({ ...decision, institutionId, personId }, loaded)
    if (loaded.lapsed || loaded.state !== "proposed") {
      return yield* new InvalidState({ state: loaded.lapsed ? "expired" : loaded.state, allowed: ["proposed"] })
    }
    const access = yield* activeAt(loaded.access, loaded.access_id, loaded.access_version).pipe(
      // The Access belongs to another institution now.
      Effect.catchTag("NotFound", () => Effect.fail(movedAway(loaded.access_id))),
    )
    if (access.digest !== loaded.grant_event_digest || access.access_digest !== loaded.access_digest) {
      return yield* Effect.die(new Error(`What review ${loaded.id} is about has changed`))
    }
    return yield* wholeChain(loaded)
  },
)

export const approving = Effect.gen(function* () {
  const { sql } = yield* Database
  const recorded = yield* recording
  const roles = yield* Roles
  const appendEvent = yield* eventAppender
  const chain = evidence(sql)
  const [columns, about] = [sql.literal(reviewColumns), sql.literal(reviewedPerson)]

  return Effect.fn("AccessReviews.approve")(function* (asked: Approval) {
    const { institutionId, personId, reason, reviewId } = asked
    const now = new Date(yield* Clock.currentTimeMillis)
    const standing = standingIn(sql, personId, institutionId, now)
    const access = accessAt(
      sql,
      sql`${institutionId}`,
      sql`access_reviews.access_id`,
      sql`access_reviews.access_version`,
    )
    const row = yield* load<Loaded>(
      sql,
      sql`
      select ${columns}, ${about}, ${answerTo(sql, standing)} as standing, ${answerTo(sql, access)} as access,
        ${entriesOf(sql, sql`access_reviews.id`)} as entries, ${isHeld(sql)} as held,
        counts_as_two(${personId}, proposed_by, null, ${now}) as independent
      from (select) always left join access_reviews
        on id = ${isUuid(reviewId) ? reviewId : null}::uuid and institution_id = ${institutionId}`,
    )

    const entries = yield* decide(row, asked).pipe(
      Effect.catchTag("Dependent", () => Effect.flatMap(roles.fourEyes(personId, row.proposed_by), Effect.fail)),
    )
    const entry = yield* chain.next(row, entries, { action: "approve", personId, reason })
    const eventId = yield* appendEvent("access-review-approved", row)

    const decided = accessAt(sql, sql`${institutionId}`, sql`${row.access_id}`, sql`${row.access_version}::int`)
    yield* fence(
      sql,
      unchanged(sql, standing, row.standing),
      unchanged(sql, decided, row.access),
      one((earlier) =>
        sql`update access_reviews set state = 'approved', approved_by = ${personId}, approved_at = ${entry.at},
            approval_event_id = ${eventId}::uuid, evidence_digest = ${entry.digest}, evidence_count = ${entry.nth}
          where id = ${row.id}::uuid and evidence_digest = ${row.evidence_digest} and ${earlier} returning 1`
      ),
    )
    yield* chain.add(entry, row.id)
    yield* addNotices(sql, { personId: row.proposed_by, kind: "review.approved", subjectId: row.id })
    const after = {
      ...row,
      state: "approved" as const,
      evidence_digest: entry.digest,
    }
    return receiptOf(after, [...entries, entry], yield* recorded("approve", row, personId))
  })
})
