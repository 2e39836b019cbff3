/**
 * Institutions as people read them: those that a person may see; for those who decide there, also the members and every
 * Access. A list is read in ascending order of an id, a page at a time.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { AccessId, AccessReviewId, InstitutionId, PersonId } from "../../schemas/BrandedIds.ts"
import type { AccessExplanation } from "../../schemas/identity/AccessExplanation.ts"
import type * as Wire from "../../schemas/identity/Institution.ts"
import { NotFound } from "../../schemas/problems/HttpProblems.ts"
import type {
  AdministratorNotEffective,
  MembershipNotActive,
  NotCurrentSponsor,
  RoleRequired,
} from "../../schemas/problems/IdentityProblems.ts"
import { HTTPValidationError } from "../../schemas/Validation.ts"
import { decisionsReader, seesAll } from "../people/InstitutionReader.ts"
import { effectiveAt, type Held, heldIn } from "../people/Roles.ts"
import { Database } from "../platform/database/Database.ts"
import { explaining } from "./AccessExplanations.ts"
import { expiredAt } from "./AccessReviews/ReviewExpiry.ts"
import { presentEnd } from "./AccessEndRows.ts"
import { pastAccess } from "./PastAccess.ts"

type RoleFault = NotFound | AdministratorNotEffective | MembershipNotActive | NotCurrentSponsor | RoleRequired

/** At most `limit` items after the item `afterId`; null: from the beginning. */
export interface ListPage {
  readonly limit: number
  readonly afterId: string | null
}

/** `at`: milliseconds since the epoch. */
export interface AccessPage extends ListPage {
  readonly at?: number | undefined
}

interface InstitutionRow {
  readonly id: InstitutionId
  readonly name: string
  readonly status: Wire.Institution["status"]
  readonly verified_domains: ReadonlyArray<string>
  readonly created_at: Date
  readonly held: ReadonlyArray<Held> | null
  readonly outside: boolean
}

interface MemberRow {
  readonly person_id: PersonId
  readonly display_name: string | null
  /** Times as PostgreSQL's JSON has them. */
  readonly memberships: Wire.InstitutionMember["memberships"]
}

interface AccessRow extends Omit<Wire.ListedAccess, "ends_at" | "granted_at" | "review"> {
  readonly granted_at: Date
  readonly ends_at: Date | null
  readonly review_id: AccessReviewId | null
  readonly review_state: "proposed" | "approved" | null
}

const viewOf = ({ held, id, outside: _, ...row }: InstitutionRow): Wire.Institution => ({
  institution_id: id,
  ...row,
  created_at: row.created_at.toISOString(),
  memberships: held ?? [],
})

const iso = (time: string | null) => time === null ? null : new Date(time).toISOString()

const memberOf = ({ memberships, ...row }: MemberRow): Wire.InstitutionMember => ({
  ...row,
  memberships: memberships.map((membership) => ({
    ...membership,
    accepted_at: iso(membership.accepted_at),
    effective_from: iso(membership.effective_from),
    expires_at: iso(membership.expires_at),
  })),
})

const accessOf = ({ ends_at, granted_at, review_id, review_state, ...row }: AccessRow): Wire.ListedAccess => ({
  ...row,
  granted_at: granted_at.toISOString(),
  ends_at: ends_at?.toISOString() ?? null,
  review: review_id === null ? null : { review_id, state: review_state! },
})

export class Institutions extends Context.Service<Institutions, {
  /** Those where the person has a membership that has not ended; for an operator or an auditor all. */
  readonly list: (personId: PersonId, page: ListPage) => Effect.Effect<Wire.Institutions, SqlError.SqlError>
  /** One of them. */
  readonly read: (
    personId: PersonId,
    institutionId: InstitutionId,
  ) => Effect.Effect<Wire.Institution, NotFound | SqlError.SqlError>
  /** By person; for a Sponsor, an effective administrator, an operator or an auditor. */
  readonly members: (
    personId: PersonId,
    institutionId: InstitutionId,
    page: ListPage,
  ) => Effect.Effect<Wire.InstitutionMembers, RoleFault | SqlError.SqlError>
  /**
   * By Access, revoked ones included; for the same. With `at`, the Access that was
   * active then, with its version and review of that moment.
   */
  readonly access: (
    personId: PersonId,
    institutionId: InstitutionId,
    page: AccessPage,
  ) => Effect.Effect<Wire.InstitutionAccess, RoleFault | HTTPValidationError | SqlError.SqlError>
  /** Why a person has, or had, an Access; for the same. NotFound where it never belonged to the institution. */
  readonly explain: (
    personId: PersonId,
    institutionId: InstitutionId,
    accessId: AccessId,
  ) => Effect.Effect<AccessExplanation, RoleFault | SqlError.SqlError>
}>()("bailiwick/services/access/Institutions") {
  static readonly layer = Layer.effect(
    Institutions,
    Effect.gen(function* () {
      return Institutions.of({ ...(yield* seen), ...(yield* decided), explain: yield* explaining })
    }),
  )
}

const seen = Effect.gen(function* () {
  const { reads } = yield* Database

  /** SQL of the columns of an institution `n`. */
  const columns = (personId: PersonId, now: Date) =>
    reads`n.id, n.name, n.status, n.verified_domains, n.created_at, ${seesAll(reads, personId)} as outside,
      (select jsonb_agg(h order by h.role) from (${heldIn(reads, personId, reads.literal("n.id"), now)}) h) as held`

  const list = Effect.fn("Institutions.list")(function* (personId: PersonId, { afterId, limit }: ListPage) {
    const now = new Date(yield* Clock.currentTimeMillis)
    const rows = yield* reads<InstitutionRow>`
      with page as (
        select id from (
          (select id from institutions
            where (select ${seesAll(reads, personId)}) and not removed and id > ${afterId ?? ""}
            order by id limit ${limit})
          union
          select i.id from institution_memberships m join institutions i on i.id = m.institution_id and not i.removed
          where m.person_id = ${personId} and not m.removed and m.state <> 'ended'
            and i.id > ${afterId ?? ""}
        ) visible order by id limit ${limit}
      )
      select ${columns(personId, now)} from institutions n where n.id in (select id from page) order by n.id`
    return { items: rows.map(viewOf) }
  })

  const read = Effect.fn("Institutions.read")(function* (personId: PersonId, institutionId: InstitutionId) {
    const now = new Date(yield* Clock.currentTimeMillis)
    const [row] = yield* reads<InstitutionRow>`
      select ${columns(personId, now)} from institutions n where n.id = ${institutionId} and not n.removed`
    return row === undefined || !row.outside && row.held === null ? yield* new NotFound() : viewOf(row)
  })

  return { list, read }
})

const decided = Effect.gen(function* () {
  const { reads } = yield* Database
  const mayRead = decisionsReader(reads)

  const members = Effect.fn("Institutions.members")(
    function* (personId: PersonId, institutionId: InstitutionId, { afterId, limit }: ListPage) {
      yield* mayRead(personId, institutionId)
      const now = new Date(yield* Clock.currentTimeMillis)
      const rows = yield* reads<MemberRow>`
        select page.person_id, p.display_name, (
          select jsonb_agg(jsonb_build_object('role', m.role, 'state', m.state, 'effective', ${effectiveAt(reads, now)},
            'accepted_at', m.accepted_at, 'effective_from', m.effective_from, 'expires_at', m.expires_at) order by m.role)
          from institution_memberships m left join institutions i on i.id = m.institution_id
          where m.institution_id = ${institutionId} and m.person_id = page.person_id and not m.removed
        ) as memberships
        from (
          select distinct person_id from institution_memberships
          where institution_id = ${institutionId} and not removed and person_id > ${afterId ?? ""}
          order by person_id limit ${limit}
        ) page left join people p on p.id = page.person_id and not p.removed
        order by page.person_id`
      return { items: rows.map(memberOf) }
    },
  )

  const access = Effect.fn("Institutions.access")(
    function* (personId: PersonId, institutionId: InstitutionId, { afterId, at, limit }: AccessPage) {
      yield* mayRead(personId, institutionId)
      const now = new Date(yield* Clock.currentTimeMillis)
      if (at !== undefined) {
        if (at > now.getTime()) {
          return yield* HTTPValidationError.at(["query", "at"], "datetime_past", "Input should be in the past")
        }
        const past = yield* reads<AccessRow>`${pastAccess(reads, institutionId, { at: new Date(at), limit, afterId })}`
        return { items: past.map(accessOf) }
      }
      const rows = yield* reads<AccessRow>`
        select page.id as access_id, page.access_version, page.project_id, page.person_id, p.display_name, page.role,
          page.state, v.created_at as granted_at, case when page.state = 'active' then page.ends_at end as ends_at, v.event_id::text as grant_event_id, r.review_id, r.review_state
        from (
          select id, access_version, project_id, person_id, role, state, ${
        reads.literal(presentEnd)
      } as ends_at from access
          where institution_id = ${institutionId} and not removed and id > ${afterId ?? ""}
          order by id limit ${limit}
        ) page
        join access_versions v on v.access_id = page.id and v.access_version = page.access_version
        left join people p on p.id = page.person_id and not p.removed
        left join lateral (
          select id::text as review_id, state as review_state from access_reviews
          where access_id = page.id and access_version = page.access_version and state in ('proposed', 'approved')
            and not (${expiredAt(reads, now)})
        ) r on true
        order by page.id`
      return { items: rows.map(accessOf) }
    },
  )

  return { members, access }
})
