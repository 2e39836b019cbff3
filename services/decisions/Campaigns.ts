/**
 * Campaigns: an institution's administrator has those who answer for a set of Accesses look at each again, until a
 * deadline (docs/api/identity.md). A campaign changes no Access: an answer is a confirmation, or a proposal that an
 * administrator other than its author decides.
 */
import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { CampaignId, InstitutionId, PersonId } from "../../schemas/BrandedIds.ts"
import type * as Wire from "../../schemas/identity/Campaign.ts"
import type { InvalidState } from "../../schemas/problems/IdentityProblems.ts"
import type { HTTPValidationError } from "../../schemas/Validation.ts"
import type { RoleFault } from "../access/AnswerableAccess.ts"
import { Database } from "../platform/database/Database.ts"
import type { Conflict, InTransaction } from "../platform/database/UnitOfWork.ts"
import { type Answering, answering } from "./Campaigns/AnswerItem.ts"
import { campaignReads, type ItemPage, type Page } from "./Campaigns/CampaignReads.ts"
import { type Closing, closing } from "./Campaigns/CloseCampaign.ts"
import { type Delegating, delegating } from "./Campaigns/DelegateItem.ts"
import type { ItemFault } from "./Campaigns/LockItem.ts"
import { type Opening, opening } from "./Campaigns/OpenCampaign.ts"
import { type Rescheduling, rescheduling } from "./Campaigns/RescheduleCampaign.ts"
import { waitingItems } from "./Campaigns/WaitingItems.ts"

type Fault = RoleFault | SqlError.SqlError

export class Campaigns extends Context.Service<Campaigns, {
  /** Newest first; for a Sponsor, an effective administrator, an operator or an auditor. */
  readonly list: (
    personId: PersonId,
    institutionId: InstitutionId,
    page: Page,
  ) => Effect.Effect<Wire.Campaigns, Fault>
  /** For the same. */
  readonly read: (
    personId: PersonId,
    institutionId: InstitutionId,
    campaignId: CampaignId,
  ) => Effect.Effect<Wire.CampaignDetail, Fault>
  /** Ascending by id; for the same. */
  readonly items: (
    personId: PersonId,
    institutionId: InstitutionId,
    campaignId: CampaignId,
    page: ItemPage,
  ) => Effect.Effect<Wire.CampaignItems, Fault>
  /** The items that wait for the person's answer, ascending by id. */
  readonly mine: (personId: PersonId, page: Page) => Effect.Effect<Wire.OwnCampaignItems, SqlError.SqlError>
  readonly open: (
    asked: Opening,
  ) => Effect.Effect<Wire.CampaignDetail, Fault | InvalidState | HTTPValidationError, InTransaction>
  /** Moves the deadline of an open campaign. */
  readonly reschedule: (
    asked: Rescheduling,
  ) => Effect.Effect<Wire.CampaignDetail, Fault | InvalidState | HTTPValidationError, InTransaction>
  readonly close: (asked: Closing) => Effect.Effect<Wire.CampaignDetail, Fault | InvalidState, InTransaction>
  readonly delegate: (asked: Delegating) => Effect.Effect<Wire.CampaignItem, ItemFault, InTransaction>
  readonly answer: (asked: Answering) => Effect.Effect<Wire.CampaignItem, Conflict | ItemFault, InTransaction>
}>()("bailiwick/services/decisions/Campaigns") {
  static readonly layer = Layer.effect(
    Campaigns,
    Effect.gen(function* () {
      const { reads } = yield* Database
      return Campaigns.of({
        ...(yield* campaignReads),
        mine: waitingItems(reads).mine,
        open: yield* opening,
        reschedule: yield* rescheduling,
        close: yield* closing,
        delegate: yield* delegating,
        answer: yield* answering,
      })
    }),
  )
}
