/** A confirmation of an Access as a row, and its answer. */
import type { PgClient } from "@effect/sql-pg"
import type { AccessId, InstitutionId, PersonId } from "../../schemas/BrandedIds.ts"
import type { AccessConfirmation } from "../../schemas/identity/PeriodicReview.ts"
import { insertion } from "../platform/database/UnitOfWork.ts"
import { reviewPeriodMillis } from "./AccessReviews/ReviewExpiry.ts"

export interface NewConfirmation {
  readonly id: string
  readonly institution_id: InstitutionId
  readonly access_id: AccessId
  readonly access_version: number
  readonly confirmed_by: PersonId
  /** RFC 3339. */
  readonly confirmed_at: string
  readonly reason: string
  readonly campaign_id: string | null
}

/** Adds rows of `access_confirmations` (UnitOfWork.ts). */
export const newConfirmations = (sql: PgClient.PgClient) =>
  insertion(sql, "access_confirmations", {
    id: "uuid",
    institution_id: "text",
    access_id: "text",
    access_version: "integer",
    confirmed_by: "text",
    confirmed_at: "timestamptz",
    reason: "text",
    campaign_id: "uuid",
  })

export const confirmationOf = (row: NewConfirmation): AccessConfirmation => ({
  confirmation_id: row.id,
  access_id: row.access_id,
  access_version: row.access_version,
  confirmed_by: row.confirmed_by,
  confirmed_at: row.confirmed_at,
  due_at: new Date(Date.parse(row.confirmed_at) + reviewPeriodMillis).toISOString(),
})
