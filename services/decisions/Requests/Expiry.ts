/**
 * Writes down that the clock has ended a request, and closes its review: by its timer, or as soon as somebody asks anew.
 * Does nothing where the request has not run out. Order of locks: review, request.
 */
import { Clock, Effect } from "effect"
import { Audit } from "../../platform/observability/Audit.ts"
import { Database } from "../../platform/database/Database.ts"
import { load } from "../../platform/database/FencedCommand.ts"
import { Timers } from "../../platform/database/Timers.ts"
import { type NewestReview, PolicyReviews } from "../../requests/PolicyReviews.ts"
import { newestReview, type RequestRow, requestRows, stateAt } from "../../requests/RequestRows.ts"

export const expiry = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  const reviews = yield* PolicyReviews
  const timers = yield* Timers
  const { change, columns } = requestRows(sql)

  return Effect.fnUntraced(function* (requestId: string) {
    const row = yield* load<RequestRow & NewestReview>(
      sql,
      sql`select ${columns}, v.* from requests r ${newestReview(sql)} where r.id = ${requestId}::uuid`,
    )
    if (row.id === null || row.state === "expired") return
    if (stateAt(row, yield* Clock.currentTimeMillis) !== "expired") return
    yield* reviews.close(row)
    yield* change(row, { state: "expired" })
    yield* timers.set(row.id, [])
    yield* audit.append({
      action: `${row.kind}-request.expired`,
      actor: "system",
      subject: `request:${row.id}`,
      outcome: "done",
    })
  })
})
