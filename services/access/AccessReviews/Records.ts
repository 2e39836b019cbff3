/** The audit record of a decision on a review, and its event for products. */
import { Effect } from "effect"
import { type AccessReviewId, PersonId } from "../../../schemas/BrandedIds.ts"
import type { GrantReceipt } from "../../../schemas/identity/AccessReview.ts"
import { EventLog } from "../../lifecycle/EventLog.ts"
import { Audit } from "../../platform/observability/Audit.ts"
import type { LoadedRow, ReviewRow } from "./Rows.ts"

/** The revoker's id where the real one was lost in a restore: no person's id has a colon. */
export const recoveryActor = PersonId.make("system:recovery")

/** Records a decision in the audit; returns the record's id. */
export const recording = Effect.map(
  Audit,
  (audit) => (action: GrantReceipt["action"], row: ReviewRow, personId: PersonId) =>
    Effect.map(
      audit.append({
        action: `access-review.${action}`,
        actor: personId === recoveryActor ? "system" : `person:${personId}`,
        subject: `access-review:${row.id}`,
        outcome: "done",
        decision: true,
        details: { institution: row.institution_id, access: row.access_id, version: row.access_version },
      }),
      ([id]) => id!,
    ),
)

export const recordingExpiry = Effect.map(
  Audit,
  (audit) => (id: AccessReviewId) =>
    audit.append({
      action: "access-review.expired",
      actor: "system",
      subject: `access-review:${id}`,
      outcome: "done",
      decision: true,
    }),
)

/** Appends the event of a decision; returns its id. */
export const eventAppender = Effect.map(
  EventLog,
  (eventLog) => (kind: "access-review-approved" | "access-review-revoked", row: LoadedRow) =>
    Effect.map(
      eventLog.append({
        kind,
        projectId: row.project_id,
        institutionId: row.institution_id,
        ...(row.person === null ? {} : { person: row.person }),
        payload: { review: { review_id: row.id, access_id: row.access_id, version: row.access_version } },
        initiatedBy: "admin",
      }),
      ([id]) => id!,
    ),
)
