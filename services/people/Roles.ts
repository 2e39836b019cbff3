/**
 * The roles of persons, read again inside the deciding transaction with the rows locked (docs/api/identity.md): a role
 * that is revoked at the same moment cannot decide any more. Nothing here comes from a token.
 *
 * A person with a membership that has not ended sees the institution, and gets the reason why a role is missing; for
 * all others the institution does not exist. *Effective* means assigned, accepted, active, begun, not expired, in an
 * active institution, for an active person who is no auditor: an auditor holds no other role.
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError, Statement } from "effect/sql"
import type { InstitutionId, PersonId, ProjectId } from "../../schemas/BrandedIds.ts"
import { NotFound } from "../../schemas/problems/HttpProblems.ts"
import {
  AdministratorNotEffective,
  type FourEyesRequired,
  MembershipNotActive,
  NotCurrentSponsor,
  RoleRequired,
} from "../../schemas/problems/IdentityProblems.ts"
import { Database } from "../platform/database/Database.ts"
import type { Question } from "../platform/database/FencedCommand.ts"
import { independence } from "./FourEyes.ts"

export type Role = "sponsor" | "administrator" | "member"

export interface Held {
  readonly role: Role
  readonly effective: boolean
}

/** A person's memberships and roles in an institution, now. */
export interface Standing {
  readonly institutionId: InstitutionId
  readonly personId: PersonId
  /** Every membership that has not ended. */
  readonly held: ReadonlyArray<Held>
  /** An effective Sponsor. */
  readonly sponsor: boolean
  /** An effective administrator. */
  readonly administrator: boolean
  /** An effective membership of any role. */
  readonly member: boolean
}

/** A person's roles for a project. `institution` is null for a person without a membership there. */
export interface ProjectStanding {
  readonly projectId: ProjectId
  readonly institutionId: InstitutionId
  readonly owner: boolean
  readonly operator: boolean
  readonly institution: Standing | null
}

type RoleFault = AdministratorNotEffective | MembershipNotActive | NotCurrentSponsor | RoleRequired

/** The 403 that names the role that is needed. */
export const roleRequired = (holder: string) => new RoleRequired({ detail: `This needs ${holder}.` })

const lapsed = "it has to be accepted and active, begun and not over, in an active institution"

/** The reason why the person has none of the roles effectively, the nearest miss first; null where it has one. */
export const lacking = (standing: Standing, ...roles: ReadonlyArray<Role>): RoleFault | null => {
  if (standing.held.some(({ effective, role }) => effective && roles.includes(role))) return null
  const has = (role: Role) => roles.includes(role) && standing.held.some((held) => held.role === role)
  const detailOf = (role: Role) => `The caller's membership as ${role} does not count now: ${lapsed}.`
  if (has("administrator")) return new AdministratorNotEffective({ detail: detailOf("administrator") })
  if (has("sponsor")) return new NotCurrentSponsor({ detail: detailOf("sponsor") })
  const needed = `an effective membership as ${roles.join(" or ")}`
  return standing.member
    ? roleRequired(`${needed} in the institution`)
    : new MembershipNotActive({ detail: `No membership of the caller counts now: ${lapsed}. This needs ${needed}.` })
}

/** Fails with the reason why the person has none of the roles effectively. */
export const needs = (standing: Standing, ...roles: ReadonlyArray<Role>): Effect.Effect<void, RoleFault> => {
  const reason = lacking(standing, ...roles)
  return reason === null ? Effect.void : Effect.fail(reason)
}

/** Fails with the reason why a person who sees the project is not an active owner of it. */
export const owns = ({ institution, owner }: ProjectStanding): Effect.Effect<
  void,
  MembershipNotActive | RoleRequired
> => {
  if (owner) return Effect.void
  const needed = "an active owner of the project"
  return Effect.fail(
    institution === null || institution.member
      ? roleRequired(needed)
      : new MembershipNotActive({ detail: `No membership of the caller counts now: ${lapsed}. This needs ${needed}.` }),
  )
}

/** Fails with the reason why a person who sees the project is not an effective administrator of its institution. */
export const administers = ({ institution }: ProjectStanding): Effect.Effect<void, RoleFault> =>
  institution === null
    ? Effect.fail(roleRequired("an effective administrator of the project's institution"))
    : needs(institution, "administrator")

/** SQL of whether a membership `m` of a person `p` in an institution `i` counts. */
export const effectiveAt = (sql: PgClient.PgClient, now: Date) =>
  sql`(p.status = 'active' and not p.removed and p.merged_into is null and not p.auditor
      and i.status = 'active' and m.state = 'active'
      and (m.role <> 'administrator' or m.accepted_at <= ${now})
      and coalesce(m.effective_from <= ${now}, true) and coalesce(m.expires_at > ${now}, true)) is true`

/**
 * SQL of a person's memberships that have not ended (`Held`), of tables `p`, `i` and `m`; `institution` is SQL of its
 * id. Both decisions and reads check roles by it.
 */
export const heldIn = (sql: PgClient.PgClient, personId: PersonId, institution: Statement.Fragment, now: Date) =>
  sql`select m.role, ${effectiveAt(sql, now)} as effective
    from people p join institutions i on i.id = ${institution} and not i.removed
    join institution_memberships m on m.institution_id = i.id and m.person_id = p.id and not m.removed
    where p.id = ${personId} and m.state <> 'ended'`

/** The same as a question of a command. Its lock takes the rows in the order people, institutions, memberships. */
export const standingIn = (
  sql: PgClient.PgClient,
  personId: PersonId,
  institutionId: InstitutionId,
  now: Date,
): Question => ({
  rows: sql`${heldIn(sql, personId, sql`${institutionId}`, now)} order by m.id`,
  lock: sql`for share`,
})

/** The standing in an answer to `standingIn`; NotFound where the person may not see the institution. */
export const standingFrom = Effect.fnUntraced(function* (
  answer: string,
  personId: PersonId,
  institutionId: InstitutionId,
) {
  return standingOf(personId, institutionId, JSON.parse(answer) as ReadonlyArray<Held>) ?? (yield* new NotFound())
})

/** The standing of a person with these memberships; null for a person without one. */
export const standingOf = (
  personId: PersonId,
  institutionId: InstitutionId,
  held: ReadonlyArray<Held>,
): Standing | null => {
  const is = (role: Role) => held.some((one) => one.role === role && one.effective)
  return held.length === 0 ? null : {
    institutionId,
    personId,
    held,
    sponsor: is("sponsor"),
    administrator: is("administrator"),
    member: held.some(({ effective }) => effective),
  }
}

/** Whether a person is an active operator, as a question of a command; null is no person. */
export const operatorRow = (sql: PgClient.PgClient, personId: PersonId | null): Question => ({
  rows: sql`
    select operator and not auditor as operator from people
    where id = ${personId}::text and status = 'active' and not removed and merged_into is null`,
  lock: sql`for share`,
})

/** Whether the answer to `operatorRow` says so. */
export const isOperatorIn = (answer: string): boolean =>
  (JSON.parse(answer) as ReadonlyArray<{ readonly operator: boolean }>)[0]?.operator ?? false

export class Roles extends Context.Service<Roles, {
  /**
   * A person's standing in an institution; NotFound where the person may not see it. In a transaction the rows stay
   * locked (`FOR SHARE`) to its end. Reads take no lock (`none`): a lock is a write, and waits for the disk.
   */
  readonly inInstitution: (
    personId: PersonId,
    institutionId: InstitutionId,
    lock?: "share" | "none",
  ) => Effect.Effect<Standing, NotFound | SqlError.SqlError>
  /**
   * A person's standing for a project, rows locked likewise; NotFound for a person who is neither owner, member nor
   * operator. A command that goes on to change the project asks for `update`: two commands that upgrade a shared lock
   * later would deadlock.
   */
  readonly toProject: (
    personId: PersonId,
    projectId: ProjectId,
    lock?: "share" | "update" | "none",
  ) => Effect.Effect<ProjectStanding, NotFound | SqlError.SqlError>
  /** Whether the person is an active operator; the row stays locked, unless `lock` is `none`. */
  readonly isOperator: (personId: PersonId, lock?: "share" | "none") => Effect.Effect<boolean, SqlError.SqlError>
  /**
   * Whether two people are independent: neither made or approved the other's person, identity or membership within 90
   * days, unless a third person approved it as well; and they are not the same person. Where one of them acts as an
   * owner of `ownersOf`, their ownership of that project is checked in the same way; other ownerships do not matter: an
   * administrator who approved a sponsor's website stays independent of the sponsor.
   */
  readonly independent: (
    one: PersonId,
    other: PersonId,
    ownersOf?: ProjectId | null,
  ) => Effect.Effect<boolean, SqlError.SqlError>
  /** The problem for two people who are not independent: it names the other person, and until when. */
  readonly fourEyes: (
    one: PersonId,
    other: PersonId,
    ownersOf?: ProjectId | null,
  ) => Effect.Effect<FourEyesRequired, SqlError.SqlError>
}>()("bailiwick/services/people/Roles") {
  static readonly layer = Layer.effect(
    Roles,
    Effect.gen(function* () {
      const { sql } = yield* Database

      const unlocked = sql.literal("")

      const standing = Effect.fnUntraced(function* (personId: PersonId, institutionId: InstitutionId, locks: boolean) {
        const now = new Date(yield* Clock.currentTimeMillis)
        const { lock, rows } = standingIn(sql, personId, institutionId, now)
        const held = yield* sql<Held>`${rows} ${locks ? lock : unlocked}`
        return standingOf(personId, institutionId, held)
      })

      const isOperator = Effect.fnUntraced(function* (personId: PersonId, lock: "share" | "none" = "share") {
        const asked = operatorRow(sql, personId)
        const [row] = yield* sql<{ operator: boolean }>`${asked.rows} ${lock === "share" ? asked.lock : unlocked}`
        return row?.operator ?? false
      })

      const inInstitution = Effect.fn("Roles.inInstitution")(
        function* (personId: PersonId, institutionId: InstitutionId, lock: "share" | "none" = "share") {
          const found = yield* standing(personId, institutionId, lock === "share")
          return found ?? (yield* new NotFound())
        },
      )

      const toProject = Effect.fn("Roles.toProject")(function* (
        personId: PersonId,
        projectId: ProjectId,
        lock: "share" | "update" | "none" = "share",
      ) {
        const locks = lock !== "none"
        const operator = yield* isOperator(personId, locks ? "share" : "none")
        const [seen] = yield* sql<{ institution_id: InstitutionId }>`
          select institution_id from projects where id = ${projectId} and not removed`
        if (seen === undefined) return yield* new NotFound()
        const there = yield* standing(personId, seen.institution_id, locks)
        const [project] = yield* sql<{ institution_id: InstitutionId }>`
          select institution_id from projects where id = ${projectId} and not removed ${
          locks ? sql.literal(`for ${lock}`) : unlocked
        }`
        // The directory may have moved the project to another institution while this waited for the lock.
        const moved = project !== undefined && project.institution_id !== seen.institution_id
        const institution = moved ? yield* standing(personId, project.institution_id, locks) : there
        const owned = yield* sql`
          select from project_owners o join people p on p.id = o.person_id and p.status = 'active' and not p.removed
            and p.merged_into is null and not p.auditor
          where o.project_id = ${projectId} and o.person_id = ${personId} and o.active and not o.removed
          ${locks ? sql.literal("for share of o") : unlocked}`
        const owner = owned.length > 0
        if (project === undefined || !(owner || operator || institution !== null)) return yield* new NotFound()
        return { projectId, institutionId: project.institution_id, owner, operator, institution }
      })

      return Roles.of({ inInstitution, toProject, isOperator, ...independence(sql) })
    }),
  )
}
