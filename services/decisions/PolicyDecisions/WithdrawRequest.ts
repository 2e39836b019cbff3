/** The author of a request withdraws it, until the request has been decided or has taken effect. */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import type { PersonId, ProjectId, RequestId } from "../../../schemas/BrandedIds.ts"
import { NotFound } from "../../../schemas/problems/HttpProblems.ts"
import { InvalidState } from "../../../schemas/problems/IdentityProblems.ts"
import { isUuid } from "../../../schemas/Wire.ts"
import { lockProject } from "../../platform/database/AdvisoryLocks.ts"
import { Database } from "../../platform/database/Database.ts"
import { fence, isFenced, load, NeedsTransaction, one, transactionOnly } from "../../platform/database/FencedCommand.ts"
import { Timers } from "../../platform/database/Timers.ts"
import { Audit } from "../../platform/observability/Audit.ts"
import { Projects } from "../../projects/Projects.ts"
import { type NewestReview, PolicyReviews } from "../../requests/PolicyReviews.ts"
import { newestReview, type RequestRow, requestRows, type RequestState, stateAt } from "../../requests/RequestRows.ts"
import { namesOf } from "../Requests/Filing.ts"
import { ownRequestColumns, ownRequestJoins, ownRequestOf, type OwnRow } from "../Requests/Listing.ts"
import { isOfProject } from "./Records.ts"

export interface Withdrawal {
  readonly personId: PersonId
  readonly requestId: RequestId
  readonly reason: string
}

/** The columns of the request are null where the person has no such request. */
type Loaded = OwnRow & NewestReview

/** The states in which a request is not decided yet, or its decision has not taken effect. */
const waiting: Readonly<Record<RequestRow["kind"], ReadonlyArray<RequestState>>> = {
  organization: ["submitted"],
  website: ["submitted"],
  access: ["submitted"],
  membership: ["submitted"],
  authenticator_reset: ["submitted"],
  access_revocation: ["submitted"],
  enrollment: ["held", "invited"],
  launch: ["proposed"],
  link: ["pending_review"],
}

/**
 * The state of a withdrawn request: that in which its kind also ends otherwise without a reviewer's decision, by an
 * objection, a revocation or the withdrawal of its project.
 */
const withdrawn = {
  organization: "declined",
  access: "declined",
  membership: "declined",
  authenticator_reset: "declined",
  access_revocation: "declined",
  link: "declined",
  enrollment: "revoked",
} as const satisfies Partial<Record<RequestRow["kind"], RequestState>>

/** As decisions on a policy review do (`inProjectsTurn`), takes its turn among the decisions about a project. */
const inProjectsTurn = Effect.fnUntraced(function* (sql: PgClient.PgClient, requestId: RequestId) {
  if ((yield* isFenced) || !isUuid(requestId)) return
  const [of] = yield* sql<{ project_id: ProjectId | null }>`
    select project_id from requests where id = ${requestId}::uuid`
  if (of === undefined || of.project_id === null) return
  yield* lockProject(sql, of.project_id)
})

const decide = Effect.fnUntraced(function* (loaded: Loaded, now: number) {
  if (loaded.id === null) return yield* new NotFound()
  const [state, allowed] = [stateAt(loaded, now), waiting[loaded.kind]]
  if (!allowed.includes(state)) return yield* new InvalidState({ state, allowed })
})

export const withdrawing = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  const projects = yield* Projects
  const reviews = yield* PolicyReviews
  const timers = yield* Timers
  const { change, columns } = requestRows(sql)

  /** Before the review and the request: decisions about a project lock it first. */
  const withProject = Effect.fnUntraced(function* (row: Loaded, { personId, reason }: Withdrawal) {
    yield* fence(
      sql,
      one((earlier) => sql`select 1 from projects where id = ${row.project_id} and ${earlier} for update`),
    )
    yield* reviews.close(row)
    return yield* transactionOnly(projects.end(row, { state: "superseded", personId, reason }))
  })

  const alone = Effect.fnUntraced(function* (row: Loaded, by: PersonId) {
    yield* reviews.close(row)
    const ended = yield* change(row, { state: withdrawn[row.kind as keyof typeof withdrawn], by, withdrawn: true })
    yield* timers.set(row.id, [])
    return ended
  })

  return Effect.fn("PolicyDecisions.withdraw")(function* (asked: Withdrawal) {
    const { personId, reason, requestId } = asked
    yield* inProjectsTurn(sql, requestId)
    const now = yield* Clock.currentTimeMillis
    const row = yield* load<Loaded>(
      sql,
      sql`
      select ${columns}, v.*, ${sql.literal(ownRequestColumns)} from (select) always
      left join requests r on r.id = ${isUuid(requestId) ? requestId : null}::uuid
        and r.author in ${namesOf(sql, personId)}
      ${sql.literal(ownRequestJoins)} ${newestReview(sql)}`,
    )
    yield* decide(row, now)
    const ofProject = isOfProject(row)
    if ((yield* isFenced) && ofProject) return yield* Effect.fail(new NeedsTransaction())

    const ended = ofProject ? yield* withProject(row, asked) : yield* alone(row, personId)
    yield* audit.append({
      action: `${row.kind}-request.withdrawn`,
      actor: `person:${personId}`,
      subject: `request:${row.id}`,
      outcome: "done",
      decision: true,
      details: { institution: row.institution_id, project: row.project_id, reason },
    })
    return ownRequestOf({ ...row, ...ended }, now)
  })
})
