/**
 * Writes down that the clock has ended a request, and closes its review: by its timer, or as soon as somebody asks anew.
 * Does nothing where the request has not run out. Order of locks: review, request.
 */
import { Clock, Effect } from "effect"
import { Audit } from "../../platform/Audit.ts"
import { Database } from "../../platform/Database.ts"
import { Timers } from "../../platform/Timers.ts"
import { PolicyReviews } from "../PolicyReviews.ts"
import { requestRows, stateAt } from "../RequestRows.ts"

export const expiry = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  const reviews = yield* PolicyReviews
  const timers = yield* Timers
  const rows = requestRows(sql)

  return Effect.fnUntraced(function* (requestId: string) {
    yield* reviews.lockOpen(requestId)
    const row = yield* rows.lock(requestId)
    if (row === null || stateAt(row, yield* Clock.currentTimeMillis) !== "expired" || row.state === "expired") return
    yield* rows.change(row, { state: "expired" })
    yield* reviews.supersede(row.id)
    yield* timers.set(row.id, [])
    yield* audit.append({
      action: `${row.kind}-request.expired`,
      actor: "system",
      subject: `request:${row.id}`,
      outcome: "done",
    })
  })
})
