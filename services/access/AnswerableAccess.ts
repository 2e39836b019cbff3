/**
 * The Access that a person is about to answer for: that it is still needed, or that it should be revoked. In the current
 * transaction. Order of locks: people, institution, memberships, project, its owner (Roles), Access.
 */
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { AccessId, InstitutionId, PersonId, ProjectId } from "../../schemas/BrandedIds.ts"
import { NotFound } from "../../schemas/problems/HttpProblems.ts"
import * as Problems from "../../schemas/problems/IdentityProblems.ts"
import { needs, owns, type ProjectStanding, Roles } from "../people/Roles.ts"
import { Database } from "../platform/database/Database.ts"
import type { InTransaction } from "../platform/database/UnitOfWork.ts"

export interface Answerable {
  readonly accessId: AccessId
  readonly institutionId: InstitutionId
  readonly personId: PersonId
  readonly expectedVersion: number
  /** Lets no other answer for the Access meanwhile; by default it only keeps the Access as it is. */
  readonly alone?: boolean
}

export interface AnswerableRow {
  readonly version: number
  readonly project_id: ProjectId
  /** Whose Access it is, after merges. */
  readonly person_id: PersonId
  readonly active: boolean
  /** The caller has this Access, by this or another of its identities. */
  readonly own: boolean
}

export type RoleFault =
  | NotFound
  | Problems.AdministratorNotEffective
  | Problems.MembershipNotActive
  | Problems.NotCurrentSponsor
  | Problems.RoleRequired

export type AnswerFault =
  | RoleFault
  | Problems.AccessNotActive
  | Problems.FourEyesRequired
  | Problems.VersionConflict
  | SqlError.SqlError

/** An owner answers for its project, and a Sponsor or administrator for the institution. */
const answersFor = (standing: ProjectStanding): Effect.Effect<void, RoleFault> =>
  standing.owner || standing.institution === null
    ? owns(standing)
    : needs(standing.institution, "sponsor", "administrator")

/** That the own Access is another's business. */
export const notOwnAccess = () =>
  new Problems.FourEyesRequired({ detail: "Nobody answers for the own Access: another person has to." })

/** Fails where the Access is not active at exactly the expected version, or where it is the caller's own. */
export const mustBeAnother = (row: AnswerableRow, expectedVersion: number) => {
  if (row.own) return Effect.fail(notOwnAccess())
  if (!row.active) {
    return Effect.fail(new Problems.AccessNotActive({ detail: "It was revoked, or has come to its end." }))
  }
  return row.version === expectedVersion
    ? Effect.void
    : Effect.fail(new Problems.VersionConflict({ current_version: row.version }))
}

export const answerable = Effect.gen(function* () {
  const { sql } = yield* Database
  const roles = yield* Roles

  /** Locks the Access, where it is the institution's; the caller's rights are not looked at. */
  const lockAccess = Effect.fnUntraced(
    function* (accessId: AccessId, institutionId: InstitutionId, personId: PersonId, alone = false) {
      const [row] = yield* sql<AnswerableRow>`
      select access_version as version, project_id, canonical_person(person_id) as person_id, state = 'active' and not removed as active,
        canonical_person(person_id) = canonical_person(${personId}) as own
      from access where id = ${accessId} and institution_id = ${institutionId}
      ${sql.literal(alone ? "for no key update" : "for share")}`
      return row ?? (yield* new NotFound())
    },
  )

  /** Locks an Access that the person may answer for. */
  const lock = Effect.fnUntraced(function* (
    { accessId, alone, expectedVersion, institutionId, personId }: Answerable,
  ): Effect.fn.Return<AnswerableRow, AnswerFault, InTransaction> {
    const [seen] = yield* sql<{ project_id: ProjectId }>`
      select project_id from access where id = ${accessId} and institution_id = ${institutionId}`
    if (seen === undefined) {
      // Without a role there, a caller does not learn whether the Access exists.
      yield* needs(yield* roles.inInstitution(personId, institutionId), "sponsor", "administrator")
      return yield* new NotFound()
    }
    const standing = yield* roles.toProject(personId, seen.project_id)
    if (standing.institutionId !== institutionId) return yield* new NotFound()
    yield* answersFor(standing)
    const row = yield* lockAccess(accessId, institutionId, personId, alone)
    // The directory may have moved it to another project meanwhile.
    if (row.project_id !== seen.project_id) return yield* new NotFound()
    yield* mustBeAnother(row, expectedVersion)
    return row
  })

  return { lock, lockAccess }
})
