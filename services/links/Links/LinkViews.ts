/** The view of a link request, for its author and the other side. */
import type { LinkProofId } from "../../../schemas/BrandedIds.ts"
import type * as Wire from "../../../schemas/identity/RequestBodies.ts"
import { filedOf, type ReviewName, stamp } from "../../requests/PolicyReviews.ts"
import type { RequestRow } from "../../requests/RequestRows.ts"

export const viewOf = (row: RequestRow, review: ReviewName | null): Wire.LinkRequest => {
  const { issuer, proof_id = null, subject } = row.fields as {
    readonly issuer: string
    readonly subject: string
    readonly proof_id?: LinkProofId
  }
  return {
    link_request_id: row.id,
    proof_id,
    issuer,
    subject,
    reason: row.reason,
    expires_at: stamp(row.expires_at!),
    effective_at: row.effective_at === null ? null : stamp(row.effective_at),
    state: row.state as Wire.LinkRequest["state"],
    ...filedOf(row, review),
  }
}
