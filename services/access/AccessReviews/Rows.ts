/** The row of a review, and its views for the API. */
import type { AccessId, AccessReviewId, InstitutionId, PersonId, ProjectId } from "../../../schemas/BrandedIds.ts"
import type { GrantReceipt, ReviewState } from "../../../schemas/identity/AccessReview.ts"

export interface ReviewRow {
  readonly id: AccessReviewId
  readonly institution_id: InstitutionId
  readonly project_id: ProjectId
  readonly access_id: AccessId
  readonly access_version: number
  readonly access_digest: string
  readonly person_id: PersonId
  readonly grant_event_id: string
  readonly grant_event_position: bigint
  readonly grant_event_digest: string
  /** The state as it was decided, also of a lapsed review. */
  readonly state: ReviewState
  /** Whether the review expired and another proposal replaced it. */
  readonly lapsed: boolean
  readonly decision_id: string
  readonly decision_digest: string
  readonly proposed_by: PersonId
  readonly proposed_at: Date
  readonly sponsor_reason: string
  readonly approved_by: PersonId | null
  readonly approved_at: Date | null
  readonly approval_event_id: string | null
  readonly revoked_by: PersonId | null
  readonly revoked_at: Date | null
  readonly evidence_digest: string
  readonly evidence_count: number
}

/** SQL of the columns of a `ReviewRow`. */
export const reviewColumns = `id::text as id, institution_id, project_id, access_id, access_version, access_digest,
  person_id, grant_event_id::text as grant_event_id, grant_event_position, grant_event_digest,
  case when state <> 'lapsed' then state when approved_at is null then 'proposed' else 'approved' end as state,
  state = 'lapsed' as lapsed, decision_id::text as decision_id, decision_digest, proposed_by, proposed_at, sponsor_reason, approved_by,
  approved_at, approval_event_id::text as approval_event_id, revoked_by, revoked_at, evidence_digest,
  evidence_count`

/** An Access at the requested version, and the grant Event of that version. */
export interface AccessRow {
  readonly state: string
  readonly access_version: number
  readonly project_id: ProjectId
  readonly person_id: PersonId
  readonly access_digest: string
  readonly event_id: string
  readonly position: number
  readonly digest: string
}

/** A review that is about to change, with its person as products know it; null where the person is not known. */
export interface LoadedRow extends ReviewRow {
  readonly person: { readonly id: PersonId; readonly issuer: string; readonly subject: string } | null
  /** The review's evidence, as JSON. */
  readonly entries: string
}

/** SQL of the column `person` of a `LoadedRow`. */
export const reviewedPerson = `(select json_build_object('id', coalesce(p.merged_into, p.id), 'issuer', p.issuer,
    'subject', p.subject)
  from people p where p.id = access_reviews.person_id and p.issuer is not null) as person`

/** The subject of a review and the Sponsor's decision: the same in a receipt and in the list. */
export const identityOf = (row: ReviewRow, decidedAt = row.proposed_at.toISOString()) => ({
  institution_id: row.institution_id,
  access: { access_id: row.access_id, version: row.access_version, digest: row.access_digest },
  sponsor_decision: {
    decision_id: row.decision_id,
    person_id: row.proposed_by,
    decided_at: decidedAt,
    digest: row.decision_digest,
    locked: true as const,
  },
  grant_event: {
    event_id: row.grant_event_id,
    position: Number(row.grant_event_position),
    digest: row.grant_event_digest,
  },
  evidence_digest: row.evidence_digest,
})

/** One entry of the chain of evidence. */
export interface Evidence {
  readonly receipt_id: string
  readonly action: GrantReceipt["action"]
  readonly person_id: PersonId
  readonly at: Date
  readonly digest: string
}

/** The receipt of the newest entry; `entries` are all entries of the review, oldest first. */
export const receiptOf = (row: ReviewRow, entries: ReadonlyArray<Evidence>, auditId: string): GrantReceipt => {
  const last = entries.at(-1)!
  const approved = entries.find(({ action }) => action === "approve")
  const revoked = entries.find(({ action }) => action === "revoke")
  return {
    receipt_id: last.receipt_id,
    review_id: row.id,
    action: last.action,
    state: row.state,
    ...identityOf(row),
    approval: approved === undefined ? null : {
      person_id: approved.person_id,
      approved_at: approved.at.toISOString(),
      digest: approved.digest,
    },
    revocation: revoked === undefined ? null : {
      person_id: revoked.person_id,
      revoked_at: revoked.at.toISOString(),
      digest: revoked.digest,
    },
    actor_person_id: last.person_id,
    recorded_at: last.at.toISOString(),
    issuer_assignment: null,
    access_effect: "unchanged",
    audit_id: auditId,
  }
}
