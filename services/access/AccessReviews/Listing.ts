/**
 * The list of an institution's reviews: for each the decision, what was queued and delivered, what the product
 * acknowledged and what is in effect stand side by side, and none of them is inferred from another. Validity is judged
 * when it is read; nothing is rewritten when a review grows old.
 */
import { Clock, Effect } from "effect"
import type { Candidate, Review, ValidityReason } from "../../../schemas/identity/AccessReviews.ts"
import { acknowledgementOf, deliveryOf, type FactRow, factsOf } from "../../lifecycle/Facts.ts"
import { needs, Roles, type Standing } from "../../people/Roles.ts"
import { Database } from "../../platform/Database.ts"
import { identityOf, type ReviewRow } from "./Rows.ts"

const day = 86_400_000

/** How long a proposal, and an approval, counts. */
export const proposalMillis = 7 * day
export const approvalMillis = 365 * day

interface ListedRow extends ReviewRow, FactRow {
  readonly access_state: string | null
  readonly current_version: number | null
  readonly sponsor_current: boolean
  readonly membership_ended: boolean
  readonly installed_version: string | null
  /** When a product acknowledged the Access as it stands now. */
  readonly observed_at: Date | null
}

interface CandidateRow {
  readonly access_id: string
  readonly access_version: number
  readonly person_id: string
  readonly project_id: string
  readonly role: string
  readonly granted_at: Date
  readonly grant_event_id: string
}

const reasonsOf = (row: ListedRow, now: number): ReadonlyArray<ValidityReason> => {
  const reasons: Array<ValidityReason> = []
  if (row.access_state !== "active") reasons.push("access_not_active")
  if (row.current_version !== row.access_version) reasons.push("access_version_superseded")
  if (!row.sponsor_current) reasons.push("sponsor_not_current")
  if (row.membership_ended) reasons.push("membership_ended")
  const until = row.approved_at === null
    ? row.proposed_at.getTime() + proposalMillis
    : row.approved_at.getTime() + approvalMillis
  if (until <= now) reasons.push("review_expired")
  if (row.state === "revoked") reasons.push("review_revoked")
  return reasons
}

const viewOf = (row: ListedRow, now: number): Review => {
  const reasons = reasonsOf(row, now)
  const at = row.revoked_at ?? row.approved_at ?? row.proposed_at
  return {
    review_id: row.id,
    project_id: row.project_id,
    person_id: row.person_id,
    ...identityOf(row),
    state: row.state,
    proposed_at: row.proposed_at.toISOString(),
    sponsor_reason: row.sponsor_reason,
    decision: { state: row.state, at: at.toISOString() },
    delivery: deliveryOf(row),
    acknowledgement: acknowledgementOf(row, row.installed_version),
    // Only a product can say what is in effect there: it has, once it acknowledged the Access as it stands.
    effective_access: {
      state: row.observed_at === null ? "unknown" : row.access_state === "active" ? "effective" : "not_effective",
      observed_at: row.observed_at?.toISOString() ?? null,
      drift: false,
    },
    validity: { current: reasons.length === 0, reasons },
  }
}

const candidateOf = (row: CandidateRow, { sponsor }: Standing): Candidate => ({
  ...row,
  granted_at: row.granted_at.toISOString(),
  proposable: sponsor,
  blocked_by: sponsor ? [] : ["not_current_sponsor"],
})

/** The list as `AccessReviews.list` gives it. */
export const listing = Effect.gen(function* () {
  const { sql } = yield* Database
  const roles = yield* Roles
  const facts = factsOf(sql)

  const reviews = (institutionId: string, now: Date) =>
    sql<ListedRow>`
      select r.*, r.id::text as id, r.grant_event_id::text as grant_event_id, r.decision_id::text as decision_id,
        case when a.removed then 'revoked' else a.state end as access_state, a.access_version as current_version,
        ${facts.columns}, l.installed_version,
        (select min(c.acknowledged_at) from access_versions v join lifecycle_told g on g.id = v.event_id
          join lifecycle_consumers c on c.project_id = g.project_id
            and (c.acknowledged_epoch, c.acknowledged_position) >= (g.epoch, g.position)
          where v.access_id = a.id and v.access_version = a.access_version) as observed_at,
        exists (
          select from institution_memberships m join people p on p.id = m.person_id and p.status = 'active'
          join institutions i on i.id = m.institution_id and i.status = 'active'
          where m.institution_id = r.institution_id and m.person_id = r.proposed_by and m.role = 'sponsor'
            and m.state = 'active' and not m.removed and not p.removed and not i.removed
            and coalesce(m.effective_from <= ${now}, true) and coalesce(m.expires_at > ${now}, true)
        ) as sponsor_current,
        coalesce((select bool_and(m.removed or m.state = 'ended') from institution_memberships m
          where m.institution_id = r.institution_id and m.person_id = r.person_id), false) as membership_ended
      from access_reviews r
      left join access a on a.id = r.access_id
      left join projects l on l.id = r.project_id
      left join lifecycle_told e on e.id = coalesce(r.revocation_event_id, r.approval_event_id)
      ${facts.joins}
      where r.institution_id = ${institutionId}
      order by r.proposed_at desc, r.id desc`

  const candidates = (institutionId: string) =>
    sql<CandidateRow>`
      select a.id as access_id, a.access_version, a.person_id, a.project_id, a.role, v.created_at as granted_at,
        v.event_id::text as grant_event_id
      from access a
      join access_versions v on v.access_id = a.id and v.access_version = a.access_version
      where a.institution_id = ${institutionId} and a.state = 'active' and not a.removed
        and not exists (
          select from access_reviews r
          where r.access_id = a.id and r.access_version = a.access_version and r.state in ('proposed', 'approved'))
      order by a.id`

  return Effect.fn("AccessReviews.list")(function* (personId: string, institutionId: string) {
    const standing = yield* roles.inInstitution(personId, institutionId)
    yield* needs(standing, "sponsor", "administrator")
    const now = yield* Clock.currentTimeMillis
    const [listed, open] = yield* Effect.all([reviews(institutionId, new Date(now)), candidates(institutionId)], {
      concurrency: 2,
    })
    return {
      institution_id: institutionId,
      as_of: new Date(now).toISOString(),
      reviews: listed.map((row) => viewOf(row, now)),
      candidates: open.map((row) => candidateOf(row, standing)),
    }
  })
})
