/** The common part of filing requests: the check for another open request, and the review, timers and audit record. */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import type { Statement } from "effect/sql"
import type { PersonId, RequestId } from "../../../schemas/BrandedIds.ts"
import { RequestExists } from "../../../schemas/problems/IdentityProblems.ts"
import { Audit } from "../../platform/observability/Audit.ts"
import { Database } from "../../platform/database/Database.ts"
import { answerTo, apart } from "../../platform/database/FencedCommand.ts"
import { Timers } from "../../platform/database/Timers.ts"
import { PolicyReviews, type PolicyRole } from "../../requests/PolicyReviews.ts"
import { type RequestRow, timersOf } from "../../requests/RequestRows.ts"
import { expiry } from "./RequestExpiry.ts"

export interface By {
  readonly personId: PersonId
}

/** SQL of a person's own id and the ids that were merged into it. */
export const namesOf = (sql: PgClient.PgClient, personId: PersonId | Statement.Fragment) =>
  sql`(select id from people where id = ${personId} or merged_into = ${personId})`

/** SQL of the open requests that meet a condition, as JSON. */
export const openOf = (sql: PgClient.PgClient, these: Statement.Fragment) =>
  answerTo(sql, {
    rows: sql`select id::text as id, expires_at from requests where state = 'submitted' and ${these}`,
  })

const requestExists = (id: RequestId, expiresAt: Date) =>
  new RequestExists({
    detail:
      `Request ${id} asks for the same and waits for its reviewers until ${expiresAt.toISOString()}: another one ` +
      "can be made once it is decided or has expired.",
  })

export const filing = Effect.gen(function* () {
  const database = yield* Database
  const audit = yield* Audit
  const reviews = yield* PolicyReviews
  const timers = yield* Timers
  const expire = yield* expiry

  /**
   * Fails where an open request asks for the same. An expired request does not count, whether its timer fired or not:
   * it is first marked as expired, in a transaction of its own.
   */
  const mustBeNew = Effect.fnUntraced(function* (open: string, now: Date) {
    for (const { expires_at, id } of JSON.parse(open) as ReadonlyArray<{ id: RequestId; expires_at: string }>) {
      const until = new Date(expires_at)
      if (until > now) return yield* requestExists(id, until)
      yield* Effect.provideService(apart(expire(id)), Database, database)
    }
  })

  /** Opens the review of a new request, and sets its timers. */
  const filed = Effect.fnUntraced(function* (row: RequestRow, roles: ReadonlyArray<PolicyRole>) {
    const review = yield* reviews.open(row, roles)
    yield* timers.set(row.id, timersOf(row, yield* Clock.currentTimeMillis))
    yield* audit.append({
      action: `${row.kind}-request.submitted`,
      actor: `person:${row.author}`,
      subject: `request:${row.id}`,
      outcome: "done",
      decision: true,
      details: { institution: row.institution_id, project: row.project_id },
    })
    return review
  })

  return { mustBeNew, filed }
})
