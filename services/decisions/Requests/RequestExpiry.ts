/**
 * Marks an expired request as such, and closes its review: called by its timer, or when the same is requested again.
 * Does nothing where the request has not expired. Order of locks: review, request.
 */
import { Clock, Effect } from "effect"
import type { RequestId } from "../../../schemas/BrandedIds.ts"
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

  return Effect.fnUntraced(function* (requestId: RequestId) {
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
      decision: true,
    })
  })
})
