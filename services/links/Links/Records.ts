/** The timers and audit records of a link request. */
import { Clock, Effect } from "effect"
import { type RequestRow, timersOf } from "../../requests/RequestRows.ts"
import { Audit } from "../../platform/observability/Audit.ts"
import { Timers } from "../../platform/database/Timers.ts"

/** Records that the request moved on, and sets its timers. */
export const recording = Effect.gen(function* () {
  const audit = yield* Audit
  const timers = yield* Timers

  return Effect.fnUntraced(function* (row: RequestRow, action: string, actor: string, more: object = {}) {
    yield* timers.set(row.id, timersOf(row, yield* Clock.currentTimeMillis))
    yield* audit.append({
      action: `link-request.${action}`,
      actor,
      subject: `request:${row.id}`,
      outcome: "done",
      decision: true,
      details: { other: row.person_id, ...more },
    })
  })
})
