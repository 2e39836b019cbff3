/**
 * The list of an institution's reviews. Each shows the decision, its delivery, the product's acknowledgement and the
 * effective access side by side, and none of these is inferred from another. Validity is judged at the time of the
 * read; no row is rewritten when a review grows old. A list whose rows have not changed is taken from memory (Seen.ts).
 */
import { Clock, Effect } from "effect"
import type { InstitutionId, PersonId } from "../../../schemas/BrandedIds.ts"
import type { Candidate, Review, ValidityReason } from "../../../schemas/identity/AccessReview.ts"
import {
  acknowledgementOf,
  type Attempted,
  attemptsOf,
  type Consumer,
  deliveryOf,
  type FactRow,
  factsAmong,
  type Given,
  type Stood,
} from "../../lifecycle/DeliveryStatus.ts"
import { lacking, needs, Roles } from "../../people/Roles.ts"
import { Database } from "../../platform/database/Database.ts"
import { counted } from "../../platform/MapSizes.ts"
import { endOf, expiredAt, isExpired } from "./ReviewExpiry.ts"
import { identityOf, reviewColumns, type ReviewRow } from "./Rows.ts"
import { Lists, seenOf, written, writtenAt } from "./Seen.ts"

interface ListedRow extends ReviewRow {
  /** The JSON of `Beside`, in a row of its own; null in the rows of reviews. */
  readonly beside: string | null
  readonly access_state: string | null
  readonly current_version: number | null
  readonly sponsor_current: boolean
  readonly membership_ended: boolean
  /** Drift: the product's event state differs from this Access. */
  readonly drift: boolean
  readonly installed_version: string | null
  /** The event of the decision, and its position in the project `told_in`; null where there is none yet. */
  readonly told: string | null
  readonly told_in: string | null
  readonly told_epoch: number | null
  readonly told_position: bigint | null
  readonly queued_at: Date | null
  /** The position of the Access's current grant Event; null where that is not known. */
  readonly granted_in: string | null
  readonly granted_epoch: number | null
  readonly granted_position: bigint | null
}

type CandidateRow = Omit<Candidate, "proposable" | "blocked_by">

/** The rest of the list, read in the same statement as the reviews, so that all of it is of one moment. */
interface Beside {
  readonly seen: string
  readonly candidates: ReadonlyArray<CandidateRow>
  readonly consumers: ReadonlyArray<Consumer>
  readonly given: ReadonlyArray<Given>
  readonly attempted: ReadonlyArray<Attempted & Stood>
}

const reasonsOf = (row: ListedRow, now: number): ReadonlyArray<ValidityReason> => {
  const reasons: Array<ValidityReason> = []
  if (row.access_state !== "active") reasons.push("access_not_active")
  if (row.current_version !== row.access_version) reasons.push("access_version_superseded")
  if (!row.sponsor_current) reasons.push("sponsor_not_current")
  if (row.membership_ended) reasons.push("membership_ended")
  if (isExpired(row, now)) reasons.push("review_expired")
  if (row.state === "revoked") reasons.push("review_revoked")
  return reasons
}

const stood = (project: string | null, epoch: number | null, position: bigint | null): Stood | null =>
  project === null || epoch === null || position === null
    ? null
    : { project_id: project, epoch, position: Number(position) }

const viewOf = (row: ListedRow, among: ReturnType<typeof factsAmong>, now: number): Review => {
  const { acknowledged, attempted, delivered } = among
  const reasons = reasonsOf(row, now)
  const proposedAt = row.proposed_at.toISOString()
  // Member by member: the spread of another object costs more than all the rest of a view.
  const { access, evidence_digest, grant_event, institution_id, sponsor_decision } = identityOf(row, proposedAt)
  const event = stood(row.told_in, row.told_epoch, row.told_position)
  const grant = stood(row.granted_in, row.granted_epoch, row.granted_position)
  const done = event === null ? undefined : acknowledged(event)
  const facts: FactRow = {
    told: row.told,
    queued_at: row.queued_at,
    delivered_at: event === null ? null : delivered(event),
    attempted: event === null ? null : attempted(event),
    acknowledged_at: done?.at ?? null,
    acknowledged_epoch: done?.epoch ?? null,
    acknowledged_position: done === undefined ? null : BigInt(done.position),
    acknowledged_version: done?.installedVersion ?? null,
  }
  // Only the product can tell the effective access: it does by acknowledging the Access's current version.
  const observed = (grant === null ? undefined : acknowledged(grant))?.at ?? null
  return {
    review_id: row.id,
    project_id: row.project_id,
    person_id: row.person_id,
    institution_id,
    access,
    sponsor_decision,
    grant_event,
    evidence_digest,
    state: row.state,
    proposed_at: proposedAt,
    sponsor_reason: row.sponsor_reason,
    decision: { state: row.state, at: (row.revoked_at ?? row.approved_at)?.toISOString() ?? proposedAt },
    delivery: deliveryOf(facts),
    acknowledgement: acknowledgementOf(facts, row.installed_version),
    effective_access: {
      state: observed === null ? "unknown" : row.access_state === "active" ? "effective" : "not_effective",
      observed_at: observed?.toISOString() ?? null,
      drift: row.drift,
    },
    validity: { current: reasons.length === 0, reasons },
  }
}

/** `refusal`: the problem with which a proposal by the caller would be refused. */
const candidateOf = (row: CandidateRow, refusal: { readonly code: string } | null): Candidate => ({
  ...row,
  granted_at: new Date(row.granted_at).toISOString(),
  proposable: refusal === null,
  blocked_by: refusal === null ? [] : [refusal.code],
})

const hour = 3_600_000

/** The time until which no review of the list expires; an hour at most. */
const untilOf = (rows: ReadonlyArray<ListedRow>, now: number): number =>
  rows.reduce((least, row) => {
    const end = endOf(row)
    return end > now && end < least ? end : least
  }, now + hour)

/** Bytes of lists that are kept in memory; a list of a thousand reviews has 1.4 MB. */
const mostBytes = 16 * 1_024 * 1_024

/** Makes `AccessReviews.list`. */
export const listing = Effect.gen(function* () {
  const { sql } = yield* Database
  const roles = yield* Roles
  const lists = new Lists(mostBytes)
  yield* counted("lists of reviews", () => lists.size)
  const columns = sql.literal(reviewColumns)

  const attempts = sql.literal(
    attemptsOf("(t.project_id, t.epoch, t.position) in (select told_in, told_epoch, told_position from reviews)"),
  )

  const rows = (institutionId: InstitutionId, now: Date) =>
    sql<ListedRow>`
      with sponsors as materialized (
        select distinct m.person_id from institution_memberships m
        join people p on p.id = m.person_id and p.status = 'active' and not p.removed and p.merged_into is null
        join institutions i on i.id = m.institution_id and i.status = 'active' and not i.removed
        where m.institution_id = ${institutionId} and m.role = 'sponsor' and m.state = 'active' and not m.removed
          and coalesce(m.effective_from <= ${now}, true) and coalesce(m.expires_at > ${now}, true)
      ), memberships as materialized (
        select r.person_id, bool_and(m.removed or m.state = 'ended') as ended
        from (select distinct person_id from access_reviews where institution_id = ${institutionId}) r
        left join people p on p.id = r.person_id and p.merged_into is not null
        join institution_memberships m on m.person_id = coalesce(p.merged_into, r.person_id)
          and m.institution_id = ${institutionId}
        group by r.person_id
      ), reviews as materialized (
        select r.*, case when a.removed then 'revoked' else a.state end as access_state,
          a.access_version as current_version, l.installed_version, e.id::text as told, e.project_id as told_in,
          e.epoch as told_epoch, e.position as told_position, e.created_at as queued_at, g.project_id as granted_in,
          g.epoch as granted_epoch, g.position as granted_position,
          r.proposed_by in (select person_id from sponsors) as sponsor_current,
          coalesce(m.ended, false) as membership_ended, d.key is not null as drift
        from access_reviews r
        left join access a on a.id = r.access_id
        left join projects l on l.id = r.project_id
        left join memberships m on m.person_id = r.person_id
        left join lifecycle_told e on e.id = coalesce(r.revocation_event_id, r.approval_event_id)
        left join access_versions v on v.access_id = a.id and v.access_version = a.access_version
        left join lifecycle_told g on g.id = v.event_id
        left join lifecycle_drift d on d.project_id = r.project_id and d.key = 'access/' || r.access_id
        where r.institution_id = ${institutionId}
      ), candidates as (
        select a.id as access_id, a.access_version, a.person_id, a.project_id, a.role, v.created_at as granted_at,
          v.event_id as grant_event_id
        from access a
        join access_versions v on v.access_id = a.id and v.access_version = a.access_version
        where a.institution_id = ${institutionId} and a.state = 'active' and not a.removed
          and not exists (
            select from access_reviews r
            where r.access_id = a.id and r.access_version = a.access_version and r.state in ('proposed', 'approved')
              and not (${expiredAt(sql, now)}))
      ), consumers as (
        select c.project_id, c.delivered_epoch, c.delivered_position, c.delivered_at, c.acknowledged_epoch,
          c.acknowledged_position, c.acknowledged_at, c.installed_version
        from lifecycle_consumers c
        where c.project_id in (select told_in from reviews union select granted_in from reviews)
      ), given as (
        select n.project_id, n.epoch, n.position, n.given_at from lifecycle_given n
        where (n.project_id, n.epoch, n.position) in (select told_in, told_epoch, told_position from reviews)
      ), attempted as (
        ${attempts}
      ), besides as (
        select json_build_object(
          'seen', (${seenOf(sql, institutionId, now)}),
          'candidates', (select coalesce(json_agg(c order by c.access_id), '[]') from candidates c),
          'consumers', (select coalesce(json_agg(c), '[]') from consumers c),
          'given', (select coalesce(json_agg(n), '[]') from given n),
          'attempted', (select coalesce(json_agg(n), '[]') from attempted n))::text as beside
      )
      select beside, ${columns}, access_state, current_version, installed_version, told, told_in, told_epoch,
        told_position, queued_at, granted_in, granted_epoch, granted_position, sponsor_current, membership_ended,
        drift
      from besides full join reviews r on false
      order by r.proposed_at desc, r.id desc`

  return Effect.fn("AccessReviews.list")(function* (personId: PersonId, institutionId: InstitutionId) {
    const standing = yield* roles.inInstitution(personId, institutionId, "none")
    yield* needs(standing, "sponsor", "administrator")
    const refusal = lacking(standing, "sponsor")
    const now = yield* Clock.currentTimeMillis
    const key = `${refusal?.code ?? ""} ${institutionId}`
    const last = lists.get(key)
    if (last !== undefined && last.from <= now && now < last.until) {
      const [found] = yield* sql<{ seen: string }>`${seenOf(sql, institutionId, new Date(now))}`
      if (found!.seen === last.seen) return writtenAt(last, now)
    }
    const found = yield* rows(institutionId, new Date(now))
    const beside = found.find(({ beside }) => beside !== null)!.beside!
    const { attempted, candidates, consumers, given, seen }: Beside = JSON.parse(beside)
    const facts = factsAmong(consumers, given, attempted)
    const listed = found.filter((row) => row.beside === null)
    const list = {
      seen,
      from: now,
      until: untilOf(listed, now),
      ...written(institutionId, {
        reviews: listed.map((row) => viewOf(row, facts, now)),
        candidates: candidates.map((row) => candidateOf(row, refusal)),
      }),
    }
    lists.set(key, list)
    return writtenAt(list, now)
  })
})
