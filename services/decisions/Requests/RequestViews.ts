/** The views of requests for their authors. A row's `fields` are as they were requested, so they have that type. */
import { AccessId, InstitutionId } from "../../../schemas/BrandedIds.ts"
import type * as Wire from "../../../schemas/identity/RequestBodies.ts"
import { filedOf, type PolicyReviewRow, stamp } from "../../requests/PolicyReviews.ts"
import type { RequestRow } from "../../requests/RequestRows.ts"

type Review = PolicyReviewRow | null

export const organizationOf = (row: RequestRow, review: Review): Wire.OrganizationRequest => ({
  ...(row.fields as Omit<Wire.RequestFields, "reason">),
  request_id: row.id,
  reason: row.reason,
  institution_id: row.result_id === null ? null : InstitutionId.make(row.result_id),
  state: row.state as Wire.OrganizationRequest["state"],
  ...filedOf(row, review),
})

/** The end that an access request asks for, RFC 3339; null: none. */
export const endIn = ({ fields }: Pick<RequestRow, "fields">): string | null =>
  typeof fields["ends_at"] === "string" ? fields["ends_at"] : null

export const accessOf = (row: RequestRow, review: Review): Wire.AccessRequest => ({
  request_id: row.id,
  institution_id: row.institution_id!,
  project_id: row.project_id!,
  reason: row.reason,
  access_id: row.result_id === null ? null : AccessId.make(row.result_id),
  ends_at: endIn(row),
  expires_at: stamp(row.expires_at!),
  state: row.state as Wire.AccessRequest["state"],
  ...filedOf(row, review),
})

/** The membership that a request asks for. */
export const membershipIn = (row: RequestRow): Wire.MembershipRequest["membership"] => ({
  ...(row.fields as Pick<Wire.MembershipChange, "role" | "state">),
  person_id: row.person_id!,
})

export const membershipOf = (row: RequestRow, review: Review): Wire.MembershipRequest => ({
  request_id: row.id,
  institution_id: row.institution_id!,
  membership: membershipIn(row),
  reason: row.reason,
  expires_at: stamp(row.expires_at!),
  state: row.state as Wire.MembershipRequest["state"],
  ...filedOf(row, review),
})

export const resetOf = (row: RequestRow, review: Review): Wire.AuthenticatorResetRequest => ({
  request_id: row.id,
  institution_id: row.institution_id!,
  person_id: row.person_id!,
  reason: row.reason,
  expires_at: stamp(row.expires_at!),
  state: row.state as Wire.AuthenticatorResetRequest["state"],
  ...filedOf(row, review),
})

/** The Access, and the version of it, that a proposal of a revocation is about. */
export const revocationIn = ({ fields }: Pick<RequestRow, "fields">) =>
  fields as Pick<Wire.AccessRevocationRequest, "access_id" | "access_version">

export const revocationOf = (row: RequestRow, review: Review): Wire.AccessRevocationRequest => ({
  request_id: row.id,
  institution_id: row.institution_id!,
  project_id: row.project_id!,
  access_id: revocationIn(row).access_id,
  access_version: revocationIn(row).access_version,
  person_id: row.person_id!,
  reason: row.reason,
  expires_at: stamp(row.expires_at!),
  state: row.state as Wire.AccessRevocationRequest["state"],
  ...filedOf(row, review),
})
