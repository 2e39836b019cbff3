/**
 * Who may act, re-read inside the deciding transaction with the rows locked (docs/api/identity.md): a role that is
 * taken away at the same moment cannot decide any more. Nothing here comes from a token.
 *
 * Whoever has a membership that has not ended sees the institution, and learns why a role is missing; to everybody else
 * it does not exist. *Effective* means assigned, accepted, active, begun, not expired, in an active institution, by an
 * active person.
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError, Statement } from "effect/sql"
import { NotFound } from "../../schemas/problems/Floor.ts"
import {
  AdministratorNotEffective,
  FourEyesRequired,
  MembershipNotActive,
  NotCurrentSponsor,
  RoleRequired,
} from "../../schemas/problems/Identity.ts"
import { Database } from "../platform/database/Database.ts"
import type { Question } from "../platform/database/FencedCommand.ts"

export type Role = "sponsor" | "administrator" | "member"

export interface Held {
  readonly role: Role
  readonly effective: boolean
}

/** What a person is in an institution, now. */
export interface Standing {
  readonly institutionId: string
  readonly personId: string
  /** Every membership that has not ended. */
  readonly held: ReadonlyArray<Held>
  /** A current actual Sponsor: held directly, active now. */
  readonly sponsor: boolean
  /** An effective administrator. */
  readonly administrator: boolean
  /** An effective membership of any role. */
  readonly member: boolean
}

/** What a person is to a project. `institution` is null for who has no membership there. */
export interface ProjectStanding {
  readonly projectId: string
  readonly institutionId: string
  readonly owner: boolean
  readonly operator: boolean
  readonly institution: Standing | null
}

type RoleFault = AdministratorNotEffective | MembershipNotActive | NotCurrentSponsor | RoleRequired

/** 403 that says which role it would have taken. */
export const roleRequired = (holder: string) => new RoleRequired({ detail: `This needs ${holder}.` })

const lapsed = "it has to be accepted and active, begun and not over, in an active institution"

/** The reason why none of the roles is held, the nearest miss first; null where one is. */
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

/** Fails with the reason why none of the roles is held. */
export const needs = (standing: Standing, ...roles: ReadonlyArray<Role>): Effect.Effect<void, RoleFault> => {
  const reason = lacking(standing, ...roles)
  return reason === null ? Effect.void : Effect.fail(reason)
}

/** Fails with the reason why somebody who sees the project is no active owner of it. */
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

const provenanceMillis = 90 * 86_400_000

/** From when on it counts who made or approved whom. */
export const provenanceSince = (now: number) => new Date(now - provenanceMillis)

const ownWork = "The caller wrote or signed it already, by this or another identity: another person has to do this."

/**
 * SQL of a person's memberships that have not ended (`Held`), of tables `p`, `i` and `m`; `institution` is SQL of its id.
 * Roles are decided by it, and what a role may read is read by it.
 */
export const heldIn = (sql: PgClient.PgClient, personId: string, institution: Statement.Fragment, now: Date) =>
  sql`select m.role, (p.status = 'active' and not p.removed and p.merged_into is null
      and i.status = 'active' and m.state = 'active'
      and (m.role <> 'administrator' or m.accepted_at <= ${now})
      and coalesce(m.effective_from <= ${now}, true) and coalesce(m.expires_at > ${now}, true)) is true as effective
    from people p join institutions i on i.id = ${institution} and not i.removed
    join institution_memberships m on m.institution_id = i.id and m.person_id = p.id and not m.removed
    where p.id = ${personId} and m.state <> 'ended'`

/** The same as what a command is decided on. Rows are locked in the order of the tables: people, institutions, memberships. */
export const standingIn = (sql: PgClient.PgClient, personId: string, institutionId: string, now: Date): Question => ({
  rows: sql`${heldIn(sql, personId, sql`${institutionId}`, now)} order by m.id`,
  lock: sql`for share`,
})

/** The standing that an answer to `standingIn` says; NotFound where the person may not see the institution. */
export const standingFrom = Effect.fnUntraced(function* (answer: string, personId: string, institutionId: string) {
  return standingOf(personId, institutionId, JSON.parse(answer) as ReadonlyArray<Held>) ?? (yield* new NotFound())
})

/** What the memberships make of a person; null for a person without one. */
export const standingOf = (personId: string, institutionId: string, held: ReadonlyArray<Held>): Standing | null => {
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

/** Whether a person is an active operator, as what a command is decided on; null is no person. */
export const operatorRow = (sql: PgClient.PgClient, personId: string | null): Question => ({
  rows: sql`
    select operator from people
    where id = ${personId}::text and status = 'active' and not removed and merged_into is null`,
  lock: sql`for share`,
})

/** Whether the answer to `operatorRow` says so. */
export const isOperatorIn = (answer: string): boolean =>
  (JSON.parse(answer) as ReadonlyArray<{ readonly operator: boolean }>)[0]?.operator ?? false

export class Roles extends Context.Service<Roles, {
  /**
   * A person's standing in an institution; NotFound where they may not see it. In a transaction the rows stay locked
   * (`FOR SHARE`) to its end. What only reads takes no lock: a lock is a write, and waits for the disk.
   */
  readonly inInstitution: (
    personId: string,
    institutionId: string,
    lock?: "share" | "none",
  ) => Effect.Effect<Standing, NotFound | SqlError.SqlError>
  /**
   * A person's standing to a project, rows locked likewise; NotFound for who is neither owner, member nor operator. Who
   * goes on to change the project says so: a lock that is shared first and taken whole later is a deadlock of two.
   */
  readonly toProject: (
    personId: string,
    projectId: string,
    lock?: "share" | "update" | "none",
  ) => Effect.Effect<ProjectStanding, NotFound | SqlError.SqlError>
  /** Whether the person is an active operator; the row stays locked, unless it is only read. */
  readonly isOperator: (personId: string, lock?: "share" | "none") => Effect.Effect<boolean, SqlError.SqlError>
  /**
   * Whether two people count as two: neither made or approved the other's person, identity or membership
   * within 90 days, unless a third person approved it as well; and they are not one person under two names. Where one
   * counts as an owner of `ownersOf`, nor that ownership; elsewhere an ownership is nothing that they count by, and an
   * administrator who approved a sponsor's website stays another person.
   */
  readonly independent: (
    one: string,
    other: string,
    ownersOf?: string | null,
  ) => Effect.Effect<boolean, SqlError.SqlError>
  /** Of two who do not count as two: beside whom the first does not, and until when. */
  readonly fourEyes: (
    one: string,
    other: string,
    ownersOf?: string | null,
  ) => Effect.Effect<FourEyesRequired, SqlError.SqlError>
}>()("bailiwick/services/people/Roles") {
  static readonly layer = Layer.effect(
    Roles,
    Effect.gen(function* () {
      const { sql } = yield* Database

      const unlocked = sql.literal("")

      const standing = Effect.fnUntraced(function* (personId: string, institutionId: string, locks: boolean) {
        const now = new Date(yield* Clock.currentTimeMillis)
        const { lock, rows } = standingIn(sql, personId, institutionId, now)
        const held = yield* sql<Held>`${rows} ${locks ? lock : unlocked}`
        return standingOf(personId, institutionId, held)
      })

      const isOperator = Effect.fnUntraced(function* (personId: string, lock: "share" | "none" = "share") {
        const asked = operatorRow(sql, personId)
        const [row] = yield* sql<{ operator: boolean }>`${asked.rows} ${lock === "share" ? asked.lock : unlocked}`
        return row?.operator ?? false
      })

      const inInstitution = Effect.fn("Roles.inInstitution")(
        function* (personId: string, institutionId: string, lock: "share" | "none" = "share") {
          const found = yield* standing(personId, institutionId, lock === "share")
          return found ?? (yield* new NotFound())
        },
      )

      const toProject = Effect.fn("Roles.toProject")(function* (
        personId: string,
        projectId: string,
        lock: "share" | "update" | "none" = "share",
      ) {
        const locks = lock !== "none"
        const operator = yield* isOperator(personId, locks ? "share" : "none")
        const [seen] = yield* sql<{ institution_id: string }>`
          select institution_id from projects where id = ${projectId} and not removed`
        if (seen === undefined) return yield* new NotFound()
        const there = yield* standing(personId, seen.institution_id, locks)
        const [project] = yield* sql<{ institution_id: string }>`
          select institution_id from projects where id = ${projectId} and not removed ${
          locks ? sql.literal(`for ${lock}`) : unlocked
        }`
        // The directory may have given it to another institution while it was waited for.
        const moved = project !== undefined && project.institution_id !== seen.institution_id
        const institution = moved ? yield* standing(personId, project.institution_id, locks) : there
        const owned = yield* sql`
          select from project_owners o join people p on p.id = o.person_id and p.status = 'active' and not p.removed
            and p.merged_into is null
          where o.project_id = ${projectId} and o.person_id = ${personId} and o.active and not o.removed
          ${locks ? sql.literal("for share of o") : unlocked}`
        const owner = owned.length > 0
        if (project === undefined || !(owner || operator || institution !== null)) return yield* new NotFound()
        return { projectId, institutionId: project.institution_id, owner, operator, institution }
      })

      const independent = Effect.fn("Roles.independent")(function* (
        one: string,
        other: string,
        ownersOf: string | null = null,
      ) {
        const now = yield* Clock.currentTimeMillis
        const [row] = yield* sql<{ independent: boolean }>`
          select counts_as_two(${one}, ${other}, ${ownersOf}::text, ${new Date(now)}) as independent`
        return row!.independent
      })

      const fourEyes = Effect.fn("Roles.fourEyes")(function* (
        one: string,
        other: string,
        ownersOf: string | null = null,
      ) {
        const since = provenanceSince(yield* Clock.currentTimeMillis)
        // The conditions are those of counts_as_two.
        const [row] = yield* sql<{ same: boolean; last: Date | null }>`
          with two as (
            select canonical_person(${one}) as id union select canonical_person(${other})
          ), names as (
            select id, id as canonical from two
            union all select p.id, two.id from people p join two on p.merged_into = two.id
          )
          select canonical_person(${one}) = canonical_person(${other}) as same, max(m.at) as last
          from names x join names y on y.canonical <> x.canonical join provenance m on m.person_id = x.id
          where m.at > ${since} and (m.project_id is null or m.project_id = ${ownersOf}::text)
            and (m.made_by = y.id or y.id = any(m.approved_by))
            and not exists (select from unnest(m.approved_by) a where a not in (select id from names))`
        if (row!.same || row!.last === null) return new FourEyesRequired({ detail: ownWork })
        const until = new Date(row!.last.getTime() + provenanceMillis).toISOString()
        return new FourEyesRequired({
          detail:
            `Beside person ${other} the caller does not count until ${until}: one of the two made or approved the ` +
            "other's person, identity, membership or ownership. Anybody who is independent of both may do it now.",
        })
      })

      return Roles.of({ inInstitution, toProject, isOperator, independent, fourEyes })
    }),
  )
}
