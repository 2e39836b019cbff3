/** A Sponsor proposes a review of exactly one active Access version. */
import { Clock, Effect } from "effect"
import { AccessReviewId, type InstitutionId, type PersonId } from "../../../schemas/BrandedIds.ts"
import type { GrantProposal } from "../../../schemas/identity/AccessReview.ts"
import { GrantEventMismatch } from "../../../schemas/problems/IdentityProblems.ts"
import { needs, standingFrom, standingIn } from "../../people/Roles.ts"
import { Database } from "../../platform/database/Database.ts"
import { answerTo, fence, load, newRow, unchanged } from "../../platform/database/FencedCommand.ts"
import { Ids } from "../../platform/Ids.ts"
import { addNotices } from "../../requests/PersonNotices.ts"
import { addCall } from "../../requests/SignatureCalls.ts"
import { accessAt, activeAt } from "./LockActiveAccess.ts"
import { decisionDigest, evidence } from "./Evidence.ts"
import { endOf, type Holder, lapses, replacedReview } from "./ReviewExpiry.ts"
import { recording, recordingExpiry } from "./Records.ts"
import { receiptOf, type ReviewRow } from "./Rows.ts"

export type Proposal = GrantProposal & { readonly personId: PersonId; readonly institutionId: InstitutionId }

/** The loaded state, with the review of this Access version that is in force. */
interface Loaded extends Holder {
  readonly standing: string
  readonly access: string
}

/** Decides the proposal: its row, and the expired review that it replaces. */
const decide = Effect.fnUntraced(function* (
  loaded: Loaded,
  { access_id, access_version, grant_event_id, institutionId, personId, reason }: Proposal,
  ids: readonly [id: AccessReviewId, decisionId: string],
  now: Date,
) {
  yield* needs(yield* standingFrom(loaded.standing, personId, institutionId), "sponsor")
  const active = yield* activeAt(loaded.access, access_id, access_version)
  if (grant_event_id != null && grant_event_id.toLowerCase() !== active.event_id) {
    return yield* new GrantEventMismatch({
      detail:
        `Event ${active.event_id} granted version ${access_version} of Access ${access_id}: send its id, or leave ` +
        "grant_event_id out.",
    })
  }
  const expired = yield* replacedReview(loaded, now)
  const decided = {
    id: ids[0],
    decision_id: ids[1],
    access_id,
    access_version,
    access_digest: active.access_digest,
    grant_event_id: active.event_id,
    grant_event_digest: active.digest,
    proposed_by: personId,
    proposed_at: now,
    sponsor_reason: reason,
  }
  const row = {
    ...decided,
    institution_id: institutionId,
    project_id: active.project_id,
    person_id: active.person_id,
    grant_event_position: BigInt(active.position),
    decision_digest: decisionDigest(decided),
    state: "proposed",
    lapsed: false,
    approved_by: null,
    approved_at: null,
    approval_event_id: null,
    revoked_by: null,
    revoked_at: null,
    evidence_digest: "",
    evidence_count: 1,
  } satisfies ReviewRow
  return { row, expired }
})

const largest = 2 ** 31 - 1

export const proposing = Effect.gen(function* () {
  const { sql } = yield* Database
  const ids = yield* Ids
  const recorded = yield* recording
  const lapsed = yield* recordingExpiry
  const chain = evidence(sql)

  const added = newRow(sql, "access_reviews", {
    id: "uuid",
    institution_id: "text",
    project_id: "text",
    access_id: "text",
    access_version: "integer",
    access_digest: "text",
    person_id: "text",
    grant_event_id: "uuid",
    grant_event_position: "bigint",
    grant_event_digest: "text",
    state: "text",
    decision_id: "uuid",
    decision_digest: "text",
    proposed_by: "text",
    proposed_at: "timestamptz",
    sponsor_reason: "text",
    evidence_digest: "text",
    evidence_count: "integer",
  })

  return Effect.fn("AccessReviews.propose")(function* (asked: Proposal) {
    const { access_id, access_version, institutionId, personId, reason } = asked
    const now = new Date(yield* Clock.currentTimeMillis)
    const standing = standingIn(sql, personId, institutionId, now)
    // Bounded by PostgreSQL's integer: no Access has a higher version.
    const version = Math.min(access_version, largest)
    const access = accessAt(sql, sql`${institutionId}`, sql`${access_id}`, sql`${version}::int`)
    const loaded = yield* load<Loaded>(
      sql,
      sql`
      select ${answerTo(sql, standing)} as standing, ${answerTo(sql, access)} as access, id::text as id, state,
        proposed_at, approved_at, evidence_digest
      from (select) always left join access_reviews
        on access_id = ${access_id} and access_version = ${version} and state in ('proposed', 'approved')`,
    )

    const [id, decisionId] = yield* ids.batch(2)
    const { expired, row } = yield* decide(loaded, asked, [AccessReviewId.make(id!), decisionId!], now)
    const entry = yield* chain.next(row, [], { action: "propose", personId, reason })

    const made = { ...row, evidence_digest: entry.digest }
    yield* fence(
      sql,
      unchanged(sql, standing, loaded.standing),
      unchanged(sql, access, loaded.access),
      ...(expired === null ? [] : [lapses(sql, loaded, now)]),
      added({ ...made, grant_event_position: String(row.grant_event_position), proposed_at: now.toISOString() }),
    )
    if (expired !== null) yield* lapsed(expired)
    yield* chain.add(entry, row.id)
    yield* addCall(sql, { review_id: row.id, kind: "access" }, now)
    const dueAt = new Date(endOf(made))
    yield* addNotices(sql, { personId, kind: "review.expired", subjectId: row.id, dueAt })
    return receiptOf(made, [entry], yield* recorded("propose", made, personId))
  })
})
