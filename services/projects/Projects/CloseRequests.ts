/** Open requests on a project that nobody decides any more, with their reviews and timers, however many they are. */
import { Effect } from "effect"
import { PolicyReviews } from "../../requests/PolicyReviews.ts"
import { requestRows } from "../../requests/RequestRows.ts"
import { Database } from "../../platform/database/Database.ts"
import { Timers } from "../../platform/database/Timers.ts"

export const closings = Effect.gen(function* () {
  const { sql } = yield* Database
  const reviews = yield* PolicyReviews
  const timers = yield* Timers
  const requests = requestRows(sql)

  /** Of a locked project: its launches, or all there is. */
  const close = Effect.fnUntraced(function* (projectId: string, which: "launches" | "all") {
    const open = (yield* requests.lockOpen(projectId)).filter(({ kind }) => which === "all" || kind === "launch")
    if (open.length === 0) return
    const [declined, superseded] = [true, false].map((access) =>
      open.filter(({ kind }) => (kind === "access") === access).map(({ id }) => id)
    )
    yield* requests.end(declined!, "declined")
    yield* requests.end(superseded!, "superseded")
    yield* reviews.supersede(...open.map(({ id }) => id))
    yield* timers.setAll(open.map(({ id }) => ({ aggregateId: id, timers: [] })))
  })

  return { close }
})
