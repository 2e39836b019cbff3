/**
 * What a person asks for on their own account: an institution, Access to a project, another role for a member; and what
 * happens once the policy review of it is through (DECISIONS-identity 1.7, 1.12).
 *
 * What is asked is a command of two round trips (FencedCommand.ts), or runs in the caller's transaction, as all that is
 * carried out does, which must be one of `Transact`. An approved request
 * is not yet anything in effect at a product: those facts are kept apart.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError, Statement } from "effect/sql"
import { domainName } from "../../schemas/identity/Addresses.ts"
import type * as Wire from "../../schemas/identity/Requests.ts"
import { NotFound } from "../../schemas/problems/Floor.ts"
import * as Problems from "../../schemas/problems/Identity.ts"
import { memberships } from "../people/Memberships.ts"
import { needs, standingFrom, standingIn } from "../people/Roles.ts"
import { Audit } from "../platform/Audit.ts"
import { canonical } from "../platform/Canonical.ts"
import { Database } from "../platform/Database.ts"
import { answerTo, apart, fence, load, type Question, unchanged } from "../platform/FencedCommand.ts"
import { Ids } from "../platform/Ids.ts"
import { Outbox } from "../platform/Outbox.ts"
import { Timers } from "../platform/Timers.ts"
import { environmentHeld } from "../projects/Refusals.ts"
import { AccessVersions } from "./AccessVersions.ts"
import { type Decision, PolicyReviews } from "./PolicyReviews.ts"
import { newRequest, requestOf, type RequestRow, requestRows, reviewWindow, timersOf } from "./RequestRows.ts"
import { activePerson, activeRow, isActiveIn, knownIn, knownRow } from "./Requests/activePerson.ts"
import { accessOf, membershipOf, organizationOf } from "./Requests/answers.ts"
import { expiry } from "./Requests/Expiry.ts"
import { type OwnPage, ownRequests } from "./Requests/Listing.ts"

type RoleFault =
  | NotFound
  | Problems.AdministratorNotEffective
  | Problems.MembershipNotActive
  | Problems.NotCurrentSponsor
  | Problems.RoleRequired

interface By {
  readonly personId: string
}

const requestExists = (id: string, expiresAt: Date) =>
  new Problems.RequestExists({
    detail:
      `Request ${id} asks for the same and waits for its reviewers until ${expiresAt.toISOString()}: another one ` +
      "can be made once it is decided or has expired.",
  })

interface AccessLoaded {
  readonly active: string
  readonly project: string
  readonly open: string
}

interface MembershipLoaded {
  readonly standing: string
  readonly member: string
  readonly open: string
}

/** States of a project that somebody may be let into. */
const live: ReadonlyArray<string> = ["registered", "launch_proposed", "launched", "held"]

/** What a website is used as by whoever was let in through a request. */
const accessRole = "user"

export class Requests extends Context.Service<Requests, {
  /** Asks for an institution. InvalidToken: the person is not active any more. */
  readonly organization: (
    asked: Wire.RequestFields & By,
  ) => Effect.Effect<Wire.OrganizationRequest, Problems.InvalidToken | SqlError.SqlError>
  /** Asks for Access to a project, which need not be visible to the person otherwise. */
  readonly access: (
    asked: Wire.RequestCreate & By,
  ) => Effect.Effect<
    Wire.AccessRequest,
    NotFound | Problems.InvalidToken | Problems.InvalidState | Problems.RequestExists | SqlError.SqlError
  >
  /** Asks for a member's role and state in an institution. */
  readonly membership: (
    asked: Wire.MembershipChange & By & { readonly institutionId: string },
  ) => Effect.Effect<Wire.MembershipRequest, RoleFault | Problems.RequestExists | SqlError.SqlError>
  /** The person's own requests of every kind, newest first, the newest 100 where no page is asked for. */
  readonly mine: (personId: string, page?: OwnPage) => Effect.Effect<Wire.OwnRequests, SqlError.SqlError>
  /** Carries out an organization, access or membership request that everybody signed. */
  readonly carryOut: (
    decision: Decision,
  ) => Effect.Effect<void, Problems.EnvironmentHeld | Problems.InvalidState | SqlError.SqlError>
}>()("bailiwick/services/access/Requests") {
  static readonly layer = Layer.effect(
    Requests,
    Effect.gen(function* () {
      const database = yield* Database
      const { reads, sql } = database
      const audit = yield* Audit
      const ids = yield* Ids
      const reviews = yield* PolicyReviews
      const timers = yield* Timers
      const versions = yield* AccessVersions
      const activeOf = activePerson(sql)
      const rows = requestRows(sql)
      const expire = yield* expiry
      const { seat } = memberships(sql, yield* Outbox)

      /** SQL of the names that somebody goes by. */
      const namesOf = (personId: string | Statement.Fragment) =>
        sql`(select id from people where id = ${personId} or merged_into = ${personId})`

      /** SQL of the open requests of these, as JSON. */
      const openOf = (these: Statement.Fragment) =>
        answerTo(sql, {
          rows: sql`select id::text as id, expires_at from requests where state = 'submitted' and ${these}`,
        })

      /**
       * Fails where an open request stands in the way of another one. An expired one does not, whether its timer fired or
       * not: that it expired is written first, by itself.
       */
      const mustBeNew = Effect.fnUntraced(function* (answer: string, now: Date) {
        for (const { expires_at, id } of JSON.parse(answer) as ReadonlyArray<{ id: string; expires_at: string }>) {
          const until = new Date(expires_at)
          if (until > now) return yield* requestExists(id, until)
          yield* Effect.provideService(apart(sql, expire(id)), Database, database)
        }
      })

      const added = newRequest(sql)

      const filed = Effect.fnUntraced(function* (row: RequestRow, roles: Parameters<typeof reviews.open>[1]) {
        const review = yield* reviews.open(row, roles)
        yield* timers.set(row.id, timersOf(row, yield* Clock.currentTimeMillis))
        yield* audit.append({
          action: `${row.kind}-request.submitted`,
          actor: `person:${row.author}`,
          subject: `request:${row.id}`,
          outcome: "done",
          details: { institution: row.institution_id, project: row.project_id },
        })
        return review
      })

      const organization = Effect.fn("Requests.organization")(
        function* ({ personId, reason, ...fields }: Wire.RequestFields & By) {
          const person = activeRow(sql, personId)
          const { active } = yield* load<{ active: string }>(sql, sql`select ${answerTo(sql, person)} as active`)
          if (!isActiveIn(active)) return yield* new Problems.InvalidToken()
          const domains = [...new Set(fields.domains.map((domain) => domainName(domain)!))]
          const contacts = [...new Map(fields.contacts.map((contact) => [canonical(contact), contact])).values()]
          const row = requestOf({
            id: yield* ids.next,
            kind: "organization",
            state: "submitted",
            author: personId,
            fields: { ...fields, domains, contacts },
            reason,
          }, new Date(yield* Clock.currentTimeMillis))
          yield* fence(sql, unchanged(sql, person, active), added(row))
          return organizationOf(row, yield* filed(row, ["operator"]))
        },
      )

      /** The project that is asked for, and whether the person has Access to it. */
      const projectRow = (personId: string, { institution_id, project_id }: Wire.RequestCreate): Question => ({
        rows: sql`
          select state, exists (
            select from access
            where project_id = ${project_id} and person_id in ${namesOf(personId)}
              and state = 'active' and not removed) as held
          from projects
          where id = ${project_id} and institution_id = ${institution_id} and not removed`,
        lock: sql`for share`,
      })

      const mayAsk = Effect.fnUntraced(function* (loaded: AccessLoaded, now: Date) {
        if (!isActiveIn(loaded.active)) return yield* new Problems.InvalidToken()
        const [project] = JSON.parse(loaded.project) as ReadonlyArray<{ state: string; held: boolean }>
        if (project === undefined) return yield* new NotFound()
        if (project.state === "withdrawn") {
          return yield* new Problems.InvalidState({ state: project.state, allowed: live })
        }
        if (project.held) return yield* new Problems.InvalidState({ state: "active", allowed: ["revoked"] })
        yield* mustBeNew(loaded.open, now)
      })

      const access = Effect.fn("Requests.access")(function* (asked: Wire.RequestCreate & By) {
        const { institution_id, personId, project_id, reason } = asked
        const now = new Date(yield* Clock.currentTimeMillis)
        const [person, project] = [activeRow(sql, personId), projectRow(personId, asked)]
        const open = openOf(sql`kind = 'access' and project_id = ${project_id} and author in ${namesOf(personId)}`)
        const loaded = yield* load<AccessLoaded>(
          sql,
          sql`select ${answerTo(sql, person)} as active, ${answerTo(sql, project)} as project, ${open} as open`,
        )
        yield* mayAsk(loaded, now)
        const row = requestOf({
          id: yield* ids.next,
          kind: "access",
          state: "submitted",
          author: personId,
          institutionId: institution_id,
          projectId: project_id,
          fields: {},
          reason,
          expiresAt: new Date(now.getTime() + reviewWindow),
        }, now)
        const [active, there] = [unchanged(sql, person, loaded.active), unchanged(sql, project, loaded.project)]
        yield* fence(sql, active, there, added(row))
        return accessOf(row, yield* filed(row, ["sponsor", "administrator"]))
      })

      const membership = Effect.fn("Requests.membership")(
        function* (asked: Wire.MembershipChange & By & { readonly institutionId: string }) {
          const { institutionId, person_id, personId, reason, role, state } = asked
          const now = new Date(yield* Clock.currentTimeMillis)
          const standing = standingIn(sql, personId, institutionId, now)
          const member = knownRow(sql, person_id)
          const open = openOf(
            sql`kind = 'membership' and institution_id = ${institutionId}
              and person_id in ${namesOf(sql`canonical_person(${person_id})`)} and fields ->> 'role' = ${role}`,
          )
          const loaded = yield* load<MembershipLoaded>(
            sql,
            sql`select ${answerTo(sql, standing)} as standing, ${answerTo(sql, member)} as member, ${open} as open`,
          )
          yield* needs(yield* standingFrom(loaded.standing, personId, institutionId), "sponsor", "administrator")
          const about = knownIn(loaded.member)
          if (about === null) return yield* new NotFound()
          yield* mustBeNew(loaded.open, now)
          const row = requestOf({
            id: yield* ids.next,
            kind: "membership",
            state: "submitted",
            author: personId,
            institutionId,
            personId: about,
            fields: { role, state },
            reason,
            expiresAt: new Date(now.getTime() + reviewWindow),
          }, now)
          const [holds, known] = [unchanged(sql, standing, loaded.standing), unchanged(sql, member, loaded.member)]
          yield* fence(sql, holds, known, added(row))
          return membershipOf(row, yield* filed(row, ["sponsor", "administrator"]))
        },
      )

      const found = Effect.fnUntraced(function* ({ approvedBy, request }: Decision) {
        const id = yield* ids.next
        const now = new Date(yield* Clock.currentTimeMillis)
        const { domains, name } = request.fields as { readonly domains: ReadonlyArray<string>; readonly name: string }
        yield* sql`
          insert into institutions (id, name, verified_domains, status, made_by, approved_by, created_at, updated_at)
          values (${id}, ${name}, ${[...domains]}::text[], 'active', ${request.author}, ${[...approvedBy]}::text[],
            ${now}, ${now})`
        yield* seat({
          institutionId: id,
          personId: request.author,
          role: "sponsor",
          state: "active",
          madeBy: request.author,
          approvedBy,
        })
        return { state: "approved", resultId: id } as const
      })

      const grant = Effect.fnUntraced(function* ({ approvedBy, request }: Decision, personId: string) {
        const projectId = request.project_id!
        const [project] = yield* sql<{ rollout: string | null; state: string }>`
          select rollout, state from projects where id = ${projectId} and not removed for share`
        if (project === undefined || project.state === "withdrawn") {
          return yield* new Problems.InvalidState({ state: "withdrawn", allowed: live })
        }
        if (project.rollout !== null) return yield* environmentHeld(projectId, project.rollout)
        const [held] = yield* sql<{ id: string }>`
          select id from access
          where project_id = ${projectId} and person_id in ${namesOf(personId)} and state = 'active' and not removed
          limit 1`
        if (held !== undefined) return { state: "approved", resultId: held.id } as const
        const accessId = yield* ids.next
        const { eventId } = yield* versions.record({
          accessId,
          institutionId: request.institution_id!,
          projectId,
          personId,
          role: accessRole,
          state: "active",
          madeBy: request.author,
          approvedBy,
        })
        return { state: "approved", resultId: accessId, eventId } as const
      })

      const change = Effect.fnUntraced(function* ({ approvedBy, request }: Decision) {
        const { role, state } = request.fields as Pick<Wire.MembershipChange, "role" | "state">
        const resultId = yield* seat({
          institutionId: request.institution_id!,
          personId: request.person_id!,
          role,
          state,
          madeBy: request.author,
          approvedBy,
        })
        return { state: "approved", resultId } as const
      })

      const carryOut = Effect.fn("Requests.carryOut")(function* (decision: Decision) {
        const { request } = decision
        const author = yield* activeOf(request.author)
        if (request.kind !== "membership" && author === null) {
          return yield* new Problems.InvalidState({ state: "author_not_active", allowed: ["active"] })
        }
        const changed = yield* request.kind === "organization"
          ? found(decision)
          : request.kind === "access"
          ? grant(decision, author!)
          : change(decision)
        const row = yield* rows.change(request, changed)
        yield* timers.set(row.id, [])
      })

      return Requests.of({ organization, access, membership, mine: ownRequests(reads), carryOut })
    }),
  )
}
