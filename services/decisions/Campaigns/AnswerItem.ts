/**
 * An owner of the project, or the item's delegate, answers an item: the Access is still needed, or should be revoked. The
 * first is a confirmation, the second a proposal that an administrator decides; neither changes the Access.
 */
import { Effect } from "effect"
import type * as Wire from "../../../schemas/identity/Campaign.ts"
import { recordingConfirmation } from "../../access/AccessConfirmations.ts"
import type { AnswerableRow } from "../../access/AnswerableAccess.ts"
import { type ProjectStanding, roleRequired } from "../../people/Roles.ts"
import { Database } from "../../platform/database/Database.ts"
import { Conflict, type InTransaction } from "../../platform/database/UnitOfWork.ts"
import { Audit } from "../../platform/observability/Audit.ts"
import { filingRevocation } from "../Requests/AskRevocation.ts"
import { answered } from "./CampaignItem.ts"
import { reading } from "./CampaignReads.ts"
import { type ItemFault, lockingItem, notOpen, type OnItem } from "./LockItem.ts"

export type Answering = Wire.CampaignAnswer & OnItem

const mayAnswer = ({ institution, owner }: ProjectStanding, delegated: boolean) =>
  owner || delegated && institution?.member === true
    ? Effect.void
    : Effect.fail(roleRequired("an active owner of the project, or the delegate of this item"))

export const answering = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  const lock = yield* lockingItem
  const confirm = yield* recordingConfirmation
  const { file, openOne } = yield* filingRevocation
  const { item } = reading(sql)

  /** The evidence of the answer. A proposal of another person that waits already is the one that this answer means, too. */
  const carryOut = Effect.fnUntraced(
    function* (asked: Answering, access: AnswerableRow, accessId: Wire.CampaignItem["access_id"]) {
      const { answer, campaignId, institutionId, personId, reason } = asked
      const by = { personId, institutionId, accessId, reason }
      if (answer === "confirm") {
        const { version } = access
        const { confirmation_id } = yield* confirm({ ...by, version, projectId: access.project_id, campaignId })
        return { confirmation_id, request_id: null, opened: null }
      }
      const open = yield* openOne({ accessId, institutionId, version: access.version })
      if (open !== null) return { confirmation_id: null, request_id: open, opened: null }
      // Another one was filed since `openOne` looked: begun anew, this answer finds it.
      const { policy_review, request_id } = yield* Effect.catchTag(
        file(by, access),
        "RequestExists",
        () => Effect.fail(new Conflict()),
      )
      return { confirmation_id: null, request_id, opened: policy_review!.review_id }
    },
  )

  return Effect.fn("Campaigns.answer")(function* (
    asked: Answering,
  ): Effect.fn.Return<Wire.CampaignItem, Conflict | ItemFault, InTransaction> {
    const { answer, campaignId, itemId, personId, reason } = asked
    const { access, around, item: found } = yield* lock(asked, mayAnswer)
    const outcome = answered(found.outcome, answer, around)
    if (outcome === null || access === null) return yield* notOpen("withdrawn")
    const { confirmation_id, opened, request_id } = yield* carryOut(asked, access, found.access_id)
    yield* sql`
      update campaign_items set outcome = ${outcome}, answered_by = ${personId}, answered_at = ${new Date(around.now)},
        reason = ${reason}, confirmation_id = ${confirmation_id}::uuid, request_id = ${request_id}::uuid
      where id = ${itemId}::uuid`
    yield* audit.append({
      action: "campaign.answered",
      actor: `person:${personId}`,
      subject: `campaign:${campaignId}`,
      outcome: "done",
      decision: true,
      details: {
        institution: asked.institutionId,
        access: found.access_id,
        version: access.version,
        answer,
        ...(request_id === null ? {} : { request: request_id }),
      },
    })
    const said = yield* item(itemId)
    // A review that was opened by this transaction is written at its end (UnitOfWork.ts), so it was not read.
    return opened === null ? said : { ...said, revocation: { ...said.revocation!, review_id: opened } }
  })
})
