/** A Sponsor or an administrator requests a role and state of a member. */
import { Clock, Effect } from "effect"
import { type InstitutionId, RequestId } from "../../../schemas/BrandedIds.ts"
import type * as Wire from "../../../schemas/identity/RequestBodies.ts"
import { NotFound } from "../../../schemas/problems/HttpProblems.ts"
import { needs, standingFrom, standingIn } from "../../people/Roles.ts"
import { Database } from "../../platform/database/Database.ts"
import { answerTo, fence, load, unchanged } from "../../platform/database/FencedCommand.ts"
import { Ids } from "../../platform/Ids.ts"
import { newRequest, requestOf, reviewWindow } from "../../requests/RequestRows.ts"
import { knownIn, knownRow } from "./ActivePerson.ts"
import { membershipOf } from "./RequestViews.ts"
import { type By, filing, namesOf, openOf } from "./Filing.ts"

export type MembershipAsked = Wire.MembershipChange & By & { readonly institutionId: InstitutionId }

interface Loaded {
  readonly standing: string
  readonly member: string
  readonly open: string
}

export const askingForMembership = Effect.gen(function* () {
  const { sql } = yield* Database
  const ids = yield* Ids
  const { filed, mustBeNew } = yield* filing
  const added = newRequest(sql)

  /** Returns the id of the member. */
  const decide = Effect.fnUntraced(function* (loaded: Loaded, { institutionId, personId }: MembershipAsked, now: Date) {
    yield* needs(yield* standingFrom(loaded.standing, personId, institutionId), "sponsor", "administrator")
    const member = knownIn(loaded.member)
    if (member === null) return yield* new NotFound()
    yield* mustBeNew(loaded.open, now)
    return member
  })

  return Effect.fn("Requests.membership")(function* (asked: MembershipAsked) {
    const { institutionId, person_id, personId, reason, role, state } = asked
    const now = new Date(yield* Clock.currentTimeMillis)
    const standing = standingIn(sql, personId, institutionId, now)
    const member = knownRow(sql, person_id)
    const open = openOf(
      sql,
      sql`kind = 'membership' and institution_id = ${institutionId}
        and person_id in ${namesOf(sql, sql`canonical_person(${person_id})`)} and fields ->> 'role' = ${role}`,
    )
    const loaded = yield* load<Loaded>(
      sql,
      sql`select ${answerTo(sql, standing)} as standing, ${answerTo(sql, member)} as member, ${open} as open`,
    )

    const about = yield* decide(loaded, asked, now)
    const row = requestOf({
      id: RequestId.make(yield* ids.next),
      kind: "membership",
      state: "submitted",
      author: personId,
      institutionId,
      personId: about,
      fields: { role, state },
      reason,
      expiresAt: new Date(now.getTime() + reviewWindow),
    }, now)

    const [holds, known] = [unchanged(sql, standing, loaded.standing), unchanged(sql, member, loaded.member)]
    yield* fence(sql, holds, known, added(row))
    return membershipOf(row, yield* filed(row, ["sponsor", "administrator"]))
  })
})
