/** A link request as the page of its notice shows it to the other side. */
import { Clock, Effect } from "effect"
import { isUuid } from "../../../schemas/Wire.ts"
import { Database } from "../../platform/database/Database.ts"
import { type RequestRow, type RequestState, stateAt } from "../../requests/RequestRows.ts"
import type { Objection } from "./Object.ts"

export interface LinkPreview {
  readonly state: RequestState
  /** Why its author asks. */
  readonly reason: string
  readonly createdAt: Date
  /** When it takes effect; null before an operator approved it. */
  readonly effectiveAt: Date | null
}

type Row = Pick<RequestRow, "state" | "kind" | "reason" | "created_at" | "expires_at" | "effective_at">

export const previewingLink = Effect.gen(function* () {
  const { sql } = yield* Database
  return Effect.fn("Links.preview")(function* ({ linkRequestId, personId }: Omit<Objection, "reason">) {
    if (!isUuid(linkRequestId)) return null
    const [row] = yield* sql<Row>`
      select r.state, r.kind, r.reason, r.created_at, r.expires_at, r.effective_at from requests r
      where r.id = ${linkRequestId}::uuid and r.kind = 'link' and r.person_id = ${personId}`
    if (row === undefined) return null
    const state = stateAt(row, yield* Clock.currentTimeMillis)
    return { state, reason: row.reason, createdAt: row.created_at, effectiveAt: row.effective_at }
  })
})
