/** Closes the open requests on a project that are not to be decided any more, with their reviews and timers. */
import { Effect } from "effect"
import type { PersonId, ProjectId } from "../../../schemas/BrandedIds.ts"
import { PolicyReviews } from "../../requests/PolicyReviews.ts"
import { endRequests, requestRows } from "../../requests/RequestRows.ts"
import { Database } from "../../platform/database/Database.ts"
import { Timers } from "../../platform/database/Timers.ts"

export const closings = Effect.gen(function* () {
  const { sql } = yield* Database
  const reviews = yield* PolicyReviews
  const timers = yield* Timers
  const requests = requestRows(sql)

  /** Closes the launches, or all requests, of a locked project; `by`: the person who closes them; null: the system. */
  const close = Effect.fnUntraced(function* (projectId: ProjectId, which: "launches" | "all", by: PersonId | null) {
    const open = (yield* requests.lockOpen(projectId)).filter(({ kind }) => which === "all" || kind === "launch")
    if (open.length === 0) return
    const [declined, superseded] = [true, false].map((access) =>
      open.filter(({ kind }) => (kind === "access" || kind === "access_revocation") === access)
    )
    yield* endRequests(sql, declined!, "declined", by)
    yield* endRequests(sql, superseded!, "superseded", by)
    yield* reviews.supersede(...open.map(({ id }) => id))
    yield* timers.setAll(open.map(({ id }) => ({ aggregateId: id, timers: [] })))
  })

  return { close }
})
