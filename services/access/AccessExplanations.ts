/**
 * Why a person has, or had, an Access: its request with the signatures, its versions with what became of their events,
 * its reviews, and what keeps it from being effective. Reads only what decisions have left behind.
 */
import { Clock, Effect } from "effect"
import type { AccessId, CampaignId, InstitutionId, PersonId, RequestId } from "../../schemas/BrandedIds.ts"
import type { AccessBlock, AccessExplanation } from "../../schemas/identity/AccessExplanation.ts"
import { NotFound } from "../../schemas/problems/HttpProblems.ts"
import { acknowledgementOf, deliveryColumns, deliveryOf, type DeliveryRow } from "../lifecycle/DeliveryStatus.ts"
import { decisionsReader } from "../people/InstitutionReader.ts"
import { Database } from "../platform/database/Database.ts"
import { countsFor, presentEnd, setIn } from "./AccessEndRows.ts"
import { endOf } from "./AccessReviews/ReviewExpiry.ts"
import { reviewColumns, type ReviewRow } from "./AccessReviews/Rows.ts"

/** Versions, and reviews, of one explanation at most. */
const most = 100

interface VersionRow extends DeliveryRow {
  readonly access_version: number
  readonly project_id: AccessExplanation["versions"][number]["project_id"]
  readonly person_id: PersonId
  readonly role: string
  readonly state: "active" | "revoked"
  readonly created_at: Date
  readonly made_by: PersonId | null
  readonly approved_by: ReadonlyArray<PersonId>
  readonly event_id: string
  readonly digest: string
  readonly installed_version: string | null
  readonly at_its_end: boolean
}

interface StateRow {
  /** Whether the newest version of all belongs to another institution. */
  readonly moved: boolean
  readonly active: boolean
  readonly person_active: boolean
  readonly project_live: boolean
  readonly drift: boolean
  readonly ends_at: Date | null
}

interface EndRow {
  readonly ends_at: Date | null
  readonly set_at: Date
  readonly made_by: PersonId
  readonly approved_by: ReadonlyArray<PersonId>
  readonly reason: string
  readonly request_id: RequestId | null
  readonly access_version: number | null
}

interface ConfirmationRow {
  readonly access_version: number
  readonly person_id: PersonId
  readonly confirmed_at: Date
  readonly reason: string
  readonly campaign_id: CampaignId | null
}

interface SignatureRow {
  readonly request_id: RequestId
  readonly author: PersonId
  readonly reason: string
  readonly created_at: Date
  /** Null where the request has no signature. */
  readonly role: string | null
  readonly person_id: PersonId
  readonly stands_in: boolean
  readonly approval_reason: string
  readonly approved_at: Date
}

const blocksOf = ({ active, moved, person_active, project_live }: StateRow): ReadonlyArray<AccessBlock> => [
  ...(active || moved ? [] : ["access_revoked" as const]),
  ...(moved ? ["moved_to_another_institution" as const] : []),
  ...(person_active ? [] : ["person_not_active" as const]),
  ...(project_live ? [] : ["project_withdrawn" as const]),
]

const versionOf = ({ person_id: _, ...row }: VersionRow): AccessExplanation["versions"][number] => ({
  access_version: row.access_version,
  project_id: row.project_id,
  role: row.role,
  state: row.state,
  created_at: row.created_at.toISOString(),
  made_by: row.made_by,
  approved_by: row.approved_by,
  at_its_end: row.at_its_end,
  event: { event_id: row.event_id, digest: row.digest },
  delivery: deliveryOf(row),
  acknowledgement: acknowledgementOf(row, row.installed_version),
})

const endRowOf = ({ ends_at, set_at, ...row }: EndRow): AccessExplanation["ends"][number] => ({
  ends_at: ends_at?.toISOString() ?? null,
  set_at: set_at.toISOString(),
  ...row,
})

const reviewOf = (row: ReviewRow): AccessExplanation["reviews"][number] => ({
  review_id: row.id,
  access_version: row.access_version,
  state: row.state,
  proposed_by: row.proposed_by,
  proposed_at: row.proposed_at.toISOString(),
  sponsor_reason: row.sponsor_reason,
  approved_by: row.approved_by,
  approved_at: row.approved_at?.toISOString() ?? null,
  independent_of: row.approved_by === null ? [] : [row.proposed_by],
  revoked_by: row.revoked_by,
  revoked_at: row.revoked_at?.toISOString() ?? null,
  expires_at: new Date(endOf(row)).toISOString(),
})

/** The request with its signatures, oldest first: each signer is independent of the author and of those before. */
const requestOf = (rows: ReadonlyArray<SignatureRow>): AccessExplanation["request"] => {
  const [first] = rows
  if (first === undefined) return null
  const signed = rows.filter(({ role }) => role !== null)
  return {
    request_id: first.request_id,
    person_id: first.author,
    reason: first.reason,
    requested_at: first.created_at.toISOString(),
    approvals: signed.map(({ approval_reason, approved_at, person_id, role, stands_in }, n) => ({
      role: role!,
      person_id,
      stands_in,
      reason: approval_reason,
      approved_at: approved_at.toISOString(),
      independent_of: [first.author, ...signed.slice(0, n).map((before) => before.person_id)],
    })),
  }
}

/** Explains one Access; NotFound where no version of it ever belonged to the institution. */
export const explaining = Effect.gen(function* () {
  const { reads } = yield* Database
  const mayRead = decisionsReader(reads)
  const delivery = deliveryColumns(reads)

  const versionsOf = (institutionId: InstitutionId, accessId: AccessId) =>
    reads<VersionRow>`
      select v.access_version, v.project_id, v.person_id, v.role, v.state, v.created_at, v.made_by, v.approved_by,
        v.event_id::text as event_id, v.digest, l.installed_version,
        v.state = 'revoked' and v.made_by is null and coalesce((
          select n.ends_at from access_ends n where n.access_id = ${accessId} and n.set_at <= v.created_at
            and ${countsFor(reads, "(v.access_version - 1)")}
          order by n.id desc limit 1) <= v.created_at, false) as at_its_end, ${delivery.columns}
      from (
        select * from access_versions where access_id = ${accessId} and institution_id = ${institutionId}
        order by access_version desc limit ${most}
      ) v
      left join projects l on l.id = v.project_id
      left join lifecycle_told e on e.id = v.event_id
      ${delivery.joins}
      order by v.access_version desc`

  const stateOf = (institutionId: InstitutionId, accessId: AccessId) =>
    reads<StateRow>`
      select v.institution_id <> ${institutionId} as moved, v.state = 'active' as active,
        coalesce(p.status = 'active' and not p.removed, false) as person_active,
        coalesce(l.state <> 'withdrawn' and not l.removed, false) as project_live,
        exists (select from lifecycle_drift d where d.project_id = v.project_id and d.key = 'access/' || v.access_id)
          as drift,
        (select ${
      reads.literal(presentEnd)
    } from access a where a.id = ${accessId} and a.state = 'active' and not a.removed) as ends_at
      from access_versions v
      left join people p on p.id = canonical_person(v.person_id)
      left join projects l on l.id = v.project_id
      where v.access_id = ${accessId} order by v.access_version desc limit 1`

  const reviewsOf = (institutionId: InstitutionId, accessId: AccessId) =>
    reads<ReviewRow>`
      select ${reads.literal(reviewColumns)} from access_reviews
      where access_id = ${accessId} and institution_id = ${institutionId}
      order by proposed_at desc, id desc limit ${most}`

  const endsOf = (institutionId: InstitutionId, accessId: AccessId) =>
    reads<EndRow>`
      select n.ends_at, n.set_at, n.made_by, n.approved_by, n.reason, n.request_id::text as request_id,
        n.access_version
      from access_ends n
      where n.access_id = ${accessId} and ${setIn(reads, institutionId)} order by n.id desc limit ${most}`

  const confirmationsOf = (institutionId: InstitutionId, accessId: AccessId) =>
    reads<ConfirmationRow>`
      select access_version, confirmed_by as person_id, confirmed_at, reason, campaign_id::text as campaign_id
      from access_confirmations where access_id = ${accessId} and institution_id = ${institutionId}
      order by access_version desc, confirmed_at desc limit ${most}`

  const signaturesOf = (institutionId: InstitutionId, accessId: AccessId) =>
    reads<SignatureRow>`
      select r.id::text as request_id, r.author, r.reason, r.created_at, a.role, a.person_id, a.stands_in,
        a.reason as approval_reason, a.approved_at
      from access_versions v
      join requests r on r.project_id = v.project_id and r.kind = 'access' and r.result_id = v.access_id
        and r.event_id = v.event_id
      left join policy_reviews p on p.request_id = r.id and p.state = 'applied'
      left join policy_approvals a on a.review_id = p.id
      where v.access_id = ${accessId} and v.institution_id = ${institutionId} and v.access_version = 1
      order by a.approved_at, a.role`

  return Effect.fn("AccessExplanations.explain")(function* (
    personId: PersonId,
    institutionId: InstitutionId,
    accessId: AccessId,
  ) {
    yield* mayRead(personId, institutionId)
    const [versions, [state], reviews, signatures, ends, confirmations] = yield* Effect.all([
      versionsOf(institutionId, accessId),
      stateOf(institutionId, accessId),
      reviewsOf(institutionId, accessId),
      signaturesOf(institutionId, accessId),
      endsOf(institutionId, accessId),
      confirmationsOf(institutionId, accessId),
    ], { concurrency: "unbounded" })
    const [newest] = versions
    if (newest === undefined || state === undefined) return yield* new NotFound()
    const blocked_by = blocksOf(state)
    return {
      access_id: accessId,
      institution_id: institutionId,
      person_id: newest.person_id,
      as_of: new Date(yield* Clock.currentTimeMillis).toISOString(),
      effective: {
        state: blocked_by.length === 0 ? "effective" : "not_effective",
        blocked_by,
        drift: !state.moved && state.drift,
      },
      request: requestOf(signatures),
      ends_at: state.moved ? null : state.ends_at?.toISOString() ?? null,
      ends: ends.map(endRowOf),
      versions: versions.map(versionOf),
      reviews: reviews.map(reviewOf),
      confirmations: confirmations.map((row) => ({ ...row, confirmed_at: row.confirmed_at.toISOString() })),
    } satisfies AccessExplanation
  })
})
