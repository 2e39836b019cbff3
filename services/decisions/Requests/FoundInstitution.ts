/** Founds the institution of an approved request, with the request's author as its Sponsor. */
import { Clock, Effect } from "effect"
import { InstitutionId } from "../../../schemas/BrandedIds.ts"
import { memberships } from "../../people/Memberships.ts"
import { Database } from "../../platform/database/Database.ts"
import { answerTo, fence, load, newRow, unchanged } from "../../platform/database/FencedCommand.ts"
import { Ids } from "../../platform/Ids.ts"
import { Outbox } from "../../platform/messaging/Outbox.ts"
import type { Decision } from "../../requests/PolicyReviews.ts"
import { activeIn, activeRow, notActive } from "./ActivePerson.ts"

export const founding = Effect.gen(function* () {
  const { sql } = yield* Database
  const ids = yield* Ids
  const { seatAmong } = memberships(sql, yield* Outbox)

  const institution = newRow(sql, "institutions", {
    id: "text",
    name: "text",
    verified_domains: "text[]",
    status: "text",
    made_by: "text",
    approved_by: "text[]",
    created_at: "timestamptz",
    updated_at: "timestamptz",
  })

  return Effect.fnUntraced(function* ({ approvedBy, request }: Decision) {
    const person = activeRow(sql, request.author)
    const { active } = yield* load<{ active: string }>(sql, sql`select ${answerTo(sql, person)} as active`)
    const founder = activeIn(active)
    if (founder === null) return yield* notActive()

    const id = InstitutionId.make(yield* ids.next)
    const at = new Date(yield* Clock.currentTimeMillis).toISOString()
    const { domains, name } = request.fields as { readonly domains: ReadonlyArray<string>; readonly name: string }
    const [made_by, approved_by] = [request.author, approvedBy]
    yield* fence(
      sql,
      unchanged(sql, person, active),
      institution({
        id,
        name,
        verified_domains: domains,
        status: "active",
        made_by,
        approved_by,
        created_at: at,
        updated_at: at,
      }),
    )
    const to = { institutionId: id, personId: founder.id, role: "sponsor", state: "active" } as const
    yield* seatAmong({ ...to, madeBy: made_by, approvedBy }, [])
    return { state: "approved", resultId: id } as const
  })
})
