/**
 * Makes an approved link effective, once the other side has had its day to object. All of it runs in the caller's
 * transaction: a merge moves every identity and receipt of a person and appends an event to each project that knows
 * either person, so a fenced write would do as much work in one longer statement.
 */
import { Clock, Effect } from "effect"
import type { PersonId } from "../../../schemas/BrandedIds.ts"
import { FourEyesCollapsed } from "../../../schemas/problems/IdentityProblems.ts"
import type { Decision } from "../../requests/PolicyReviews.ts"
import { type RequestRow, requestRows, timersOf } from "../../requests/RequestRows.ts"
import { Database } from "../../platform/database/Database.ts"
import { Mails } from "../../platform/mail/Mails.ts"
import { Timers } from "../../platform/database/Timers.ts"
import { holderOf } from "./Holder.ts"
import { merging } from "./Merging.ts"
import { linkEventFanout } from "./LinkEventFanout.ts"
import { objection } from "./Objection.ts"
import { recording } from "./Records.ts"

export const takingEffect = Effect.gen(function* () {
  const { sql } = yield* Database
  const timers = yield* Timers
  const recorded = yield* recording
  const fanout = yield* linkEventFanout()
  const rows = requestRows(sql)
  const { decidedTogether, entangled, lockBoth, merge } = merging(sql)
  const objectionUntil = objection(sql, yield* Mails)

  const signers = ({ id }: RequestRow) =>
    Effect.map(
      sql<{ person_id: PersonId }>`
        select a.person_id from policy_approvals a join policy_reviews v on v.id = a.review_id
        where v.request_id = ${id}::uuid`,
      (found) => found.map(({ person_id }) => person_id),
    )

  /** Links, or declines a request whose identities may no longer be linked. */
  const link = Effect.fnUntraced(function* (row: RequestRow) {
    const now = new Date(yield* Clock.currentTimeMillis)
    const { issuer, subject } = row.fields as { readonly issuer: string; readonly subject: string }
    const other = row.person_id
    const active = yield* lockBoth([row.author, ...(other === null ? [] : [other])])
    const [holder] = yield* sql<{ id: PersonId }>`${holderOf(sql, sql`${issuer}`, sql`${subject}`).rows}`
    const sound = active.has(row.author) && (holder?.id ?? null) === other &&
      (other === null ||
        active.has(other) && !(yield* entangled(other)) && !(yield* decidedTogether(row.author, other)))
    if (!sound) {
      return yield* recorded(yield* rows.change(row, { state: "declined" }), "declined", "system")
    }
    const approvedBy = yield* signers(row)
    const pair = yield* fanout.about(row)
    if (other !== null) yield* merge({ from: other, into: row.author, approvedBy, now })
    else {
      yield* sql`insert into identities (issuer, subject, person_id, linked_at, made_by, approved_by)
        values (${issuer}, ${subject}, ${row.author}, ${now}, ${row.author}, ${[...approvedBy]}::text[])`
    }
    const eventId = yield* fanout.tell(pair)
    const linked = yield* rows.change(row, {
      state: "linked",
      resultId: row.author,
      ...(eventId === undefined ? {} : { eventId }),
    })
    yield* recorded(linked, "linked", "system")
  })

  /** Links the identities of a due request; called by its timer. */
  const settle = Effect.fn("Links.settle")(function* (read: RequestRow) {
    // People are locked before requests.
    yield* lockBoth([read.author, ...(read.person_id === null ? [] : [read.person_id])])
    const row = yield* rows.lock(read.id)
    const now = yield* Clock.currentTimeMillis
    if (row?.state !== "pending_review" || row.effective_at === null || row.effective_at.getTime() > now) return
    const until = yield* objectionUntil(row, now)
    if (until <= now) return yield* link(row)
    const later = yield* rows.change(row, { effectiveAt: new Date(until) })
    yield* timers.set(later.id, timersOf(later, now))
  })

  /** Carries out an operator's approval: sets the time at which the link takes effect. */
  const carryOut = Effect.fn("Links.carryOut")(function* ({ approvedBy, request }: Decision) {
    if (request.person_id !== null && (yield* decidedTogether(request.author, request.person_id))) {
      return yield* new FourEyesCollapsed()
    }
    const now = yield* Clock.currentTimeMillis
    const effectiveAt = new Date(Math.max(now, yield* objectionUntil(request, now)))
    const row = yield* rows.change(request, { effectiveAt })
    yield* recorded(row, "approved", `person:${approvedBy.at(-1)!}`)
    if (effectiveAt.getTime() <= now) yield* link(row)
  })

  return { settle, carryOut }
})
