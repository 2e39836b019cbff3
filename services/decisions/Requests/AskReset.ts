/**
 * A Sponsor or an administrator requests that all authenticators of a member are removed, who has lost them. Another
 * person decides, never the member: an intruder may act as the member. Where the member also belongs to
 * another institution, or is an operator, an operator signs as well, for all whom the authenticators protect.
 */
import { Clock, Effect } from "effect"
import { type InstitutionId, RequestId } from "../../../schemas/BrandedIds.ts"
import type * as Wire from "../../../schemas/identity/RequestBodies.ts"
import { NotFound } from "../../../schemas/problems/HttpProblems.ts"
import { FourEyesRequired } from "../../../schemas/problems/IdentityProblems.ts"
import { needs, standingFrom, standingIn } from "../../people/Roles.ts"
import { Database } from "../../platform/database/Database.ts"
import { answerTo, fence, load, unchanged } from "../../platform/database/FencedCommand.ts"
import { Ids } from "../../platform/Ids.ts"
import { newRequest, requestOf, reviewWindow } from "../../requests/RequestRows.ts"
import { knownIn, knownRow } from "./ActivePerson.ts"
import { type By, filing, openOf } from "./Filing.ts"
import { resetOf } from "./RequestViews.ts"

export type ResetAsked = Wire.AuthenticatorResetCreate & By & { readonly institutionId: InstitutionId }

interface Loaded {
  readonly standing: string
  readonly member: string
  /** Whether the person is a member of the institution. */
  readonly belongs: boolean
  readonly widely: boolean
  readonly open: string
}

/** That one's own lost authenticators are another's business. */
export const notOneself = (what: string) =>
  new FourEyesRequired({ detail: `Nobody ${what} the removal of the own authenticators: another person has to.` })

export const askingForReset = Effect.gen(function* () {
  const { sql } = yield* Database
  const ids = yield* Ids
  const { filed, mustBeNew } = yield* filing
  const added = newRequest(sql)

  const read = ({ institutionId, person_id, personId }: ResetAsked, now: Date) => {
    const [standing, member] = [standingIn(sql, personId, institutionId, now), knownRow(sql, person_id)]
    const held = sql`institution_memberships m where m.person_id = canonical_person(${person_id})
      and m.state <> 'ended' and not m.removed`
    const open = openOf(sql, sql`kind = 'authenticator_reset' and person_id = canonical_person(${person_id})`)
    const statement = sql`select ${answerTo(sql, standing)} as standing, ${answerTo(sql, member)} as member,
      exists (select from ${held} and m.institution_id = ${institutionId}) as belongs,
      exists (select from ${held} and m.institution_id <> ${institutionId})
        or exists (select from people where id = canonical_person(${person_id}) and operator) as widely, ${open} as open`
    return { standing, member, statement }
  }

  /** Returns the id of the member. */
  const decide = Effect.fnUntraced(function* (loaded: Loaded, { institutionId, personId }: ResetAsked, now: Date) {
    yield* needs(yield* standingFrom(loaded.standing, personId, institutionId), "sponsor", "administrator")
    const member = knownIn(loaded.member)
    if (member === null || !loaded.belongs) return yield* new NotFound()
    if (member === personId) return yield* notOneself("asks for")
    yield* mustBeNew(loaded.open, now)
    return member
  })

  return Effect.fn("Requests.reset")(function* (asked: ResetAsked) {
    const { institutionId, personId, reason } = asked
    const now = new Date(yield* Clock.currentTimeMillis)
    const { member, standing, statement } = read(asked, now)
    const loaded = yield* load<Loaded>(sql, statement)
    const about = yield* decide(loaded, asked, now)
    const row = requestOf({
      id: RequestId.make(yield* ids.next),
      kind: "authenticator_reset",
      state: "submitted",
      author: personId,
      institutionId,
      personId: about,
      fields: { person_id: about },
      reason,
      expiresAt: new Date(now.getTime() + reviewWindow),
    }, now)
    const [holds, known] = [unchanged(sql, standing, loaded.standing), unchanged(sql, member, loaded.member)]
    yield* fence(sql, holds, known, added(row))
    return resetOf(row, yield* filed(row, loaded.widely ? ["administrator", "operator"] : ["administrator"]))
  })
})
