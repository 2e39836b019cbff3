/** The other side of a link objects; possible until the link has taken effect. */
import { Clock, Effect } from "effect"
import type { PersonId, RequestId } from "../../../schemas/BrandedIds.ts"
import { NotFound } from "../../../schemas/problems/HttpProblems.ts"
import { InvalidState } from "../../../schemas/problems/IdentityProblems.ts"
import { isUuid } from "../../../schemas/Wire.ts"
import { type NewestReview, PolicyReviews, reviewIn } from "../../requests/PolicyReviews.ts"
import { newestReview, type RequestRow, requestRows, stateAt } from "../../requests/RequestRows.ts"
import { Database } from "../../platform/database/Database.ts"
import { load } from "../../platform/database/FencedCommand.ts"
import { roleRequired } from "../../people/Roles.ts"
import { viewOf } from "./LinkViews.ts"
import { recording } from "./Records.ts"

export interface Objection {
  readonly personId: PersonId
  readonly linkRequestId: RequestId
  readonly reason: string | null
}

/** Columns are null where there is no such request. */
interface Loaded extends RequestRow, NewestReview {}

const decide = Effect.fnUntraced(function* (loaded: Loaded, personId: PersonId, now: number) {
  if (loaded.id === null) return yield* new NotFound()
  if (loaded.author === personId) {
    return yield* roleRequired("the other side of the link: its author cannot object to it")
  }
  if (loaded.person_id !== personId) return yield* new NotFound()
  const state = stateAt(loaded, now)
  if (state !== "pending_review") return yield* new InvalidState({ state, allowed: ["pending_review"] })
})

export const objecting = Effect.gen(function* () {
  const { sql } = yield* Database
  const reviews = yield* PolicyReviews
  const recorded = yield* recording
  const { change, columns } = requestRows(sql)

  return Effect.fn("Links.object")(function* ({ linkRequestId, personId, reason }: Objection) {
    const row = yield* load<Loaded>(
      sql,
      sql`
      select ${columns}, v.* from (select) always
      left join requests r on r.id = ${isUuid(linkRequestId) ? linkRequestId : null}::uuid and r.kind = 'link'
      ${newestReview(sql)}`,
    )
    yield* decide(row, personId, yield* Clock.currentTimeMillis)
    yield* reviews.close(row)
    const declined = yield* change(row, { state: "declined" })
    yield* recorded(declined, "objected", `person:${personId}`, { reason })
    return viewOf(declined, reviewIn(row))
  })
})
