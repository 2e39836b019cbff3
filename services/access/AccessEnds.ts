/**
 * Ends of Access: an administrator brings an end forward, and the program revokes an Access at its end. Reviews and
 * products refer to versions, so an end that moves makes none; the end itself makes the version that revokes. Order of
 * locks: people, institution, memberships (Roles), Access.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { AccessId, InstitutionId, PersonId } from "../../schemas/BrandedIds.ts"
import type { AccessEnd, AccessShortening } from "../../schemas/identity/AccessEnd.ts"
import { NotFound } from "../../schemas/problems/HttpProblems.ts"
import * as Problems from "../../schemas/problems/IdentityProblems.ts"
import { HTTPValidationError } from "../../schemas/Validation.ts"
import { persons } from "../people/PersonAudience.ts"
import { needs, Roles } from "../people/Roles.ts"
import { Database } from "../platform/database/Database.ts"
import { Timers } from "../platform/database/Timers.ts"
import { type InTransaction, write } from "../platform/database/UnitOfWork.ts"
import { Ids } from "../platform/Ids.ts"
import { Audit } from "../platform/observability/Audit.ts"
import { aggregateOf, newEnds, presentEnd } from "./AccessEndRows.ts"
import { isOver, shortened, type Term, timersOf } from "./AccessTerm.ts"
import { AccessVersions } from "./AccessVersions.ts"
import type { Grant } from "./AccessVersions/VersionRows.ts"

export interface Shortening extends AccessShortening {
  readonly personId: PersonId
  readonly institutionId: InstitutionId
  readonly accessId: AccessId
}

type RoleFault =
  | NotFound
  | Problems.AdministratorNotEffective
  | Problems.MembershipNotActive
  | Problems.NotCurrentSponsor
  | Problems.RoleRequired

interface Row extends Grant {
  readonly version: number
  readonly ends_at: Date | null
}

const termOf = ({ ends_at, state }: Row): Term => ({
  active: state === "active",
  endsAt: ends_at?.getTime() ?? null,
})

const refusalOf = (why: "not_active" | "not_future" | "not_earlier", { ends_at }: Row) =>
  why === "not_active"
    ? new Problems.AccessNotActive({ detail: "It was revoked, or has come to its end." })
    : why === "not_future"
    ? HTTPValidationError.at(["body", "ends_at"], "datetime_future", "Input should be in the future")
    : new Problems.InvalidState({
      state: "active",
      allowed: [],
      detail: `The Access ends at ${ends_at!.toISOString()}: it ends later only by a request that is reviewed anew.`,
    })

export class AccessEnds extends Context.Service<AccessEnds, {
  /** Gives an active Access an earlier end, for an effective administrator of its institution. */
  readonly shorten: (asked: Shortening) => Effect.Effect<
    AccessEnd,
    | RoleFault
    | Problems.AccessNotActive
    | Problems.InvalidState
    | Problems.VersionConflict
    | HTTPValidationError
    | SqlError.SqlError,
    InTransaction
  >
  /** Revokes an Access whose end has come; any other keeps its timer, or loses it where it needs none. */
  readonly settle: (accessId: AccessId) => Effect.Effect<void, SqlError.SqlError, InTransaction>
}>()("bailiwick/services/access/AccessEnds") {
  static readonly layer = Layer.effect(
    AccessEnds,
    Effect.gen(function* () {
      return AccessEnds.of({ shorten: yield* shortening, settle: yield* settling })
    }),
  )
}

const columns = `institution_id as "institutionId", project_id as "projectId", person_id as "personId", role,
  case when removed then 'revoked' else state end as state, access_version as version,
  ${presentEnd} as ends_at`

const shortening = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  const ids = yield* Ids
  const roles = yield* Roles
  const timers = yield* Timers
  const evidence = newEnds(sql)

  return Effect.fn("AccessEnds.shorten")(function* ({ accessId, institutionId, personId, ...asked }: Shortening) {
    yield* needs(yield* roles.inInstitution(personId, institutionId), "administrator")
    const [row] = yield* sql<Row>`
      select ${
      sql.literal(columns)
    } from access where id = ${accessId} and institution_id = ${institutionId} for update`
    if (row === undefined) return yield* new NotFound()
    const now = yield* Clock.currentTimeMillis
    const next = shortened(termOf(row), Date.parse(asked.ends_at.toUpperCase()), now)
    if (next === "not_active") return yield* refusalOf(next, row)
    if (row.version !== asked.expected_version) {
      return yield* new Problems.VersionConflict({ current_version: row.version })
    }
    if (typeof next === "string") return yield* refusalOf(next, row)
    const ends_at = new Date(next.endsAt!).toISOString()
    yield* sql`
      update access set ends_at = ${ends_at}, ends_version = null, ends_before = null, revision = revision + 1
      where id = ${accessId}`
    yield* write(sql, evidence, [{
      id: yield* ids.next,
      access_id: accessId,
      ends_at,
      set_at: new Date(now).toISOString(),
      made_by: personId,
      approved_by: [],
      reason: asked.reason,
      request_id: null,
      access_version: null,
    }])
    yield* timers.set(aggregateOf(accessId), timersOf(next))
    yield* audit.append({
      action: "access.shortened",
      actor: `person:${personId}`,
      subject: `access:${accessId}`,
      outcome: "done",
      decision: true,
      details: { institution: institutionId, project: row.projectId, ends_at },
    })
    return { access_id: accessId, access_version: row.version, ends_at } satisfies AccessEnd
  })
})

const settling = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  const timers = yield* Timers
  const versions = yield* AccessVersions
  const people = persons(sql)

  return Effect.fn("AccessEnds.settle")(function* (accessId: AccessId) {
    const [seen] = yield* sql<Pick<Grant, "personId">>`
      select person_id as "personId" from access where id = ${accessId} and person_id is not null`
    const known = seen === undefined ? [] : yield* people.lock([seen.personId])
    const [row] = yield* sql<Row>`select ${sql.literal(columns)} from access where id = ${accessId} for update`
    const aggregate = aggregateOf(accessId)
    if (row === undefined) return yield* timers.set(aggregate, [])
    // The directory moved it to another person meanwhile, or its person is not known yet: the timer is tried again.
    if (row.personId !== seen?.personId || known.length === 0) return
    const term = termOf(row)
    if (!isOver(term, yield* Clock.currentTimeMillis)) return yield* timers.set(aggregate, timersOf(term))
    yield* timers.set(aggregate, [])
    yield* audit.append({
      action: "access.ended",
      actor: "system",
      subject: `access:${accessId}`,
      outcome: "done",
      decision: true,
      details: { institution: row.institutionId, project: row.projectId, person: row.personId },
    })
    const { institutionId, personId, projectId, role } = row
    const grant = { institutionId, personId, projectId, role, state: "revoked" } as const
    yield* versions.record({ ...grant, accessId, madeBy: null, approvedBy: [], ended: true })
  })
})
