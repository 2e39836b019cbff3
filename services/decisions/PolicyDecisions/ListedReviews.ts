/** A review as its signers are shown it: with its signatures, and with what is asked for. */
import type { PgClient } from "@effect/sql-pg"
import type { PersonId } from "../../../schemas/BrandedIds.ts"
import type { PolicyReviews } from "../../../schemas/identity/PolicyReview.ts"
import { masked } from "../../platform/mail/MailAddress.ts"
import { policyReviewColumns, type PolicyReviewRow, type Signature, stamp } from "../../requests/PolicyReviews.ts"

export interface ListedRow extends PolicyReviewRow {
  readonly approvals: ReadonlyArray<Omit<Signature, "approved_at"> & { readonly approved_at: string }> | null
  readonly asked: Readonly<Record<string, unknown>>
  /** Null where no signer declined, as are the three columns after it. */
  readonly declined_by: PersonId | null
  readonly declined_role: string
  readonly decline_reason: string
  readonly decided_at: Date
}

const hidden = ({ recipient, ...asked }: ListedRow["asked"]) =>
  recipient === undefined ? asked : { ...asked, recipient: masked(String(recipient)) }

export const listedOf = (row: ListedRow): PolicyReviews["items"][number] => ({
  review_id: row.id,
  state: row.state,
  required_roles: row.required_roles,
  approvals: (row.approvals ?? []).map((one) => ({ ...one, approved_at: stamp(new Date(one.approved_at)) })),
  kind: row.kind,
  request_id: row.request_id,
  institution_id: row.institution_id,
  project_id: row.project_id,
  author_person_id: row.author,
  reason: row.reason,
  asked: hidden(row.asked),
  created_at: stamp(row.created_at),
  declined: row.declined_by === null ? null : {
    role: row.declined_role,
    person_id: row.declined_by,
    reason: row.decline_reason,
    declined_at: stamp(row.decided_at),
  },
})

/** SQL of what `v` asks for, as JSON, of its request `r` or its project. */
const asked = (sql: PgClient.PgClient) =>
  sql`case v.kind
      when 'website' then (
        select to_jsonb(j) from (
          select name, website, environment, connector_kind, connector_product, preview_digest, redirect_uris,
            post_logout_redirect_uris, backchannel_logout_uri, requested_scopes,
            r.fields ->> 'owner_person_id' as owner_person_id
          from projects where id = v.project_id) j)
      when 'membership' then r.fields || jsonb_build_object('person_id', r.person_id)
      else r.fields
    end`

/** SQL of the columns of a `ListedRow`, of a review `v` and its request `r`. */
export const listedColumns = (sql: PgClient.PgClient) =>
  sql`${sql.literal(policyReviewColumns)}, v.declined_by, v.declined_role, v.decline_reason, v.decided_at, (
      select json_agg(json_build_object('role', a.role, 'person_id', a.person_id, 'approved_at', a.approved_at)
        order by a.approved_at, a.role)
      from policy_approvals a where a.review_id = v.id) as approvals, ${asked(sql)} as asked`
