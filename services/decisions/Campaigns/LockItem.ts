/**
 * An item of an open campaign with the standing of the person who acts on it, in the current transaction. Order of locks:
 * people, institution, memberships, project, its owner (Roles), Access, campaign (share), item.
 */
import { Clock, Effect } from "effect"
import type { SqlError } from "effect/sql"
import type {
  AccessId,
  CampaignId,
  CampaignItemId,
  InstitutionId,
  PersonId,
  ProjectId,
} from "../../../schemas/BrandedIds.ts"
import type { CampaignItemState } from "../../../schemas/identity/Campaign.ts"
import { isUuid } from "../../../schemas/Wire.ts"
import { NotFound } from "../../../schemas/problems/HttpProblems.ts"
import { type FourEyesRequired, InvalidState } from "../../../schemas/problems/IdentityProblems.ts"
import { answerable, type AnswerableRow, notOwnAccess, type RoleFault } from "../../access/AnswerableAccess.ts"
import { type ProjectStanding, Roles } from "../../people/Roles.ts"
import { Database } from "../../platform/database/Database.ts"
import type { InTransaction } from "../../platform/database/UnitOfWork.ts"
import { type Around, endOf, type Outcome, stateOf } from "./CampaignItem.ts"
import { aroundOf, type ItemRow } from "./CampaignRows.ts"

export interface OnItem {
  readonly personId: PersonId
  readonly institutionId: InstitutionId
  readonly campaignId: CampaignId
  readonly itemId: CampaignItemId
}

interface Seen {
  readonly project_id: ProjectId
  readonly access_id: AccessId
  /** The person is the item's delegate, by this or another of its identities. */
  readonly delegated: boolean
}

interface Locked extends Pick<ItemRow, "access_id" | "access_version" | "closed_at" | "deadline" | "superseded_at"> {
  readonly outcome: Outcome
  readonly person_id: PersonId
  readonly delegated: boolean
  /** Another process has ended the campaign (EndedCampaigns.ts). */
  readonly ended: boolean
}

export interface LockedItem {
  readonly item: Locked
  /** Null where the Access left the institution. */
  readonly access: AnswerableRow | null
  readonly around: Around
}

/** Whether the person may act on the item, by its standing for the project and whether it is the item's delegate. */
export type May = (standing: ProjectStanding, delegated: boolean) => Effect.Effect<void, RoleFault>

export type ItemFault = RoleFault | FourEyesRequired | InvalidState | SqlError.SqlError

const words: Readonly<Record<CampaignItemState, string>> = {
  open: "It waits for an answer.",
  confirmed: "It was answered: the Access is confirmed.",
  proposed_for_revocation: "It was answered: the Access is proposed for revocation.",
  withdrawn: "The Access was revoked, or has another version than the one that was asked about.",
  unanswered: "The campaign has ended.",
}

/** Why an item takes no answer any more. */
export const notOpen = (state: CampaignItemState) =>
  new InvalidState({ state, allowed: ["open"], detail: words[state] })

export const lockingItem = Effect.gen(function* () {
  const { sql } = yield* Database
  const roles = yield* Roles
  const { lockAccess } = yield* answerable

  const itemRow = ({ campaignId, institutionId, itemId, personId }: OnItem) =>
    sql<Locked>`
      select i.access_id, i.access_version, i.person_id, i.outcome, c.deadline, c.closed_at, c.ended or i.over as ended, (
          select created_at from access_versions s
          where s.access_id = i.access_id and s.access_version = i.access_version + 1) as superseded_at,
        coalesce(canonical_person(i.delegate) = canonical_person(${personId}), false) as delegated
      from campaigns c join campaign_items i on i.campaign_id = c.id
      where i.id = ${itemId}::uuid and c.id = ${campaignId}::uuid and c.institution_id = ${institutionId}
      for share of c for update of i`

  return Effect.fnUntraced(function* (
    of: OnItem,
    may: May,
  ): Effect.fn.Return<LockedItem, ItemFault, InTransaction> {
    const { campaignId, institutionId, itemId, personId } = of
    if (!isUuid(campaignId) || !isUuid(itemId)) return yield* new NotFound()
    const [seen] = yield* sql<Seen>`
      select i.project_id, i.access_id, coalesce(canonical_person(i.delegate) = canonical_person(${personId}), false) as delegated
      from campaign_items i
      where i.id = ${itemId}::uuid and i.campaign_id = ${campaignId}::uuid and i.institution_id = ${institutionId}`
    if (seen === undefined) return yield* new NotFound()
    const standing = yield* roles.toProject(personId, seen.project_id)
    if (standing.institutionId !== institutionId) return yield* new NotFound()
    yield* may(standing, seen.delegated)
    const access = yield* Effect.catchTag(
      lockAccess(seen.access_id, institutionId, personId),
      "NotFound",
      () => Effect.succeed(null),
    )
    const [item] = yield* itemRow(of)
    // What was read without a lock may have changed since.
    yield* may(standing, item!.delegated)
    if (access?.own === true) return yield* notOwnAccess()
    const clock = yield* Clock.currentTimeMillis
    // What has ended is over, also where this process's clock is late.
    const now = item!.ended ? Math.max(clock, endOf(aroundOf({ ...item!, superseded_at: null }, clock))) : clock
    const current = access !== null && access.active && access.version === item!.access_version
    const superseded_at = current ? null : item!.superseded_at ?? new Date(now)
    const around = aroundOf({ ...item!, superseded_at }, now)
    const state = stateOf(item!.outcome, around)
    if (state !== "open") return yield* notOpen(state)
    return { item: item!, access, around }
  })
})
