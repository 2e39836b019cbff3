/**
 * The history of every Access. A changed role or state, or a removal (revoked), is a new version: an immutable row and
 * its grant Event, in the transaction of the change, whatever caused it. Versions count from 1 for each Access,
 * independent of the feed's own versions.
 *
 * The history follows the row of `access`: `settle` compares the row with its last version and writes what is missing.
 * An Access whose person is not known yet has no version and is not effective; it gets a version when the person
 * arrives. An Access that moved to another person or project is first revoked where it was.
 *
 * `digest` is the digest of the version in canonical JSON: the columns of access_versions except `digest`, with
 * `created_at` as RFC 3339 with milliseconds.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { AccessId, InstitutionId, PersonId, ProjectId } from "../../schemas/BrandedIds.ts"
import type { FactKind } from "../../schemas/identity/FactKinds.ts"
import { EventLog, type Fact } from "../lifecycle/EventLog.ts"
import { type Person, personOf, persons, standingOf } from "../people/PersonAudience.ts"
import { digestOf } from "../platform/security/CanonicalJson.ts"
import { Database } from "../platform/database/Database.ts"
import { fence, newRow } from "../platform/database/FencedCommand.ts"
import { insertion, write as add } from "../platform/database/Gathered.ts"

type State = "active" | "revoked"

/** A person's right to use a project in a role. */
interface Grant {
  readonly institutionId: InstitutionId
  readonly projectId: ProjectId
  readonly personId: PersonId
  readonly role: string
  readonly state: State
}

/** The maker and approvers of a change, as ids of people; changes of the feed have none. */
interface Makers {
  readonly madeBy: PersonId | null
  readonly approvedBy: ReadonlyArray<PersonId>
}

export interface AccessDecision extends Grant, Makers {
  readonly accessId: AccessId
}

export interface AccessVersion {
  readonly accessVersion: number
  /** The grant Event. */
  readonly eventId: string
  readonly digest: string
}

interface Last extends Grant, AccessVersion {}

const same = (a: Grant, b: Grant) =>
  a.institutionId === b.institutionId && a.projectId === b.projectId && a.personId === b.personId &&
  a.role === b.role && a.state === b.state

const moved = (a: Grant, b: Grant) => a.projectId !== b.projectId || a.personId !== b.personId

const ofFeed: Makers = { madeBy: null, approvedBy: [] }

const codes = {
  "access-granted": "ACCESS_GRANTED",
  "access-revoked": "ACCESS_REVOKED",
  "token-claims-change": "ACCESS_ROLE_CHANGED",
} as const

const kindOf = (last: Last | null, next: Grant) =>
  next.state === "revoked" ? "access-revoked" : last?.state === "active" ? "token-claims-change" : "access-granted"

/**
 * The events of a new version, the grant Event first; `standing`: the event for the person's status, where one is due.
 */
const factsOf = (
  accessId: AccessId,
  last: Last | null,
  next: Grant,
  person: Person,
  madeBy: PersonId | null,
  standing: FactKind | null,
) => {
  const kind = kindOf(last, next)
  const access = {
    access_id: accessId,
    version: (last?.accessVersion ?? 0) + 1,
    ...(last === null ? {} : { previous_version: last.accessVersion }),
    role: next.role,
  }
  const reason = { reason_admin: { en: `${codes[kind]}_BY_${madeBy === null ? "DIRECTORY" : "ADMINISTRATOR"}` } }
  const tell = (kind: FactKind, payload: NonNullable<Fact["payload"]> = {}): Fact => ({
    kind,
    projectId: next.projectId,
    institutionId: next.institutionId,
    person: personOf(person),
    payload: { ...reason, ...payload },
    initiatedBy: madeBy === null ? "system" : "admin",
  })
  // A revoked Access also ends the person's sessions there.
  return [
    tell(kind, kind === "token-claims-change" ? { access, claims: { role: next.role } } : { access }),
    ...(kind === "access-revoked" && last?.state === "active" ? [tell("session-revoked")] : []),
    ...(standing === null ? [] : [tell(standing)]),
  ]
}

const versionColumns = {
  access_id: "text",
  access_version: "integer",
  institution_id: "text",
  project_id: "text",
  person_id: "text",
  role: "text",
  state: "text",
  digest: "text",
  event_id: "uuid",
  created_at: "timestamptz",
  made_by: "text",
  approved_by: "text[]",
} as const

/** A version as its row will be. */
const versionOf = (
  accessId: AccessId,
  accessVersion: number,
  { institutionId, personId, projectId, role, state }: Grant,
  { approvedBy, madeBy }: Makers,
  eventId: string,
  millis: number,
) => {
  const row = {
    access_id: accessId,
    access_version: accessVersion,
    institution_id: institutionId,
    project_id: projectId,
    person_id: personId,
    role,
    state,
    event_id: eventId,
    created_at: new Date(millis).toISOString(),
    made_by: madeBy,
    approved_by: approvedBy,
  }
  return { ...row, digest: digestOf(row) }
}

/** An active person who was not merged into another, as projects know them. */
export interface Holder {
  readonly id: PersonId
  readonly issuer: string
  readonly subject: string
}

export class AccessVersions extends Context.Service<AccessVersions, {
  /**
   * Writes a decision that was made here, in the current transaction of `Transact`: the Access (which the feed cannot
   * undo until it has sent the same), its version and its grant Event. A decision that changes nothing returns the
   * current version. The person must be known.
   */
  readonly record: (decision: AccessDecision) => Effect.Effect<AccessVersion, SqlError.SqlError>
  /**
   * Writes a new Access, its first version and its grant Event, as a part of a command of two round trips
   * (FencedCommand.ts). The caller has fenced the holder, and that the holder has no Access yet.
   */
  readonly grant: (decision: AccessDecision, holder: Holder) => Effect.Effect<AccessVersion, SqlError.SqlError>
  /**
   * Writes the missing version of an Access whose row the caller has locked; returns the current version, or null where
   * the Access has none and needs none yet.
   */
  readonly settle: (accessId: AccessId, makers?: Makers) => Effect.Effect<AccessVersion | null, SqlError.SqlError>
}>()("bailiwick/services/access/AccessVersions") {
  static readonly layer = Layer.effect(
    AccessVersions,
    Effect.gen(function* () {
      const { sql } = yield* Database
      const positions = yield* EventLog
      const people = persons(sql)
      const versionNames = sql.literal(Object.keys(versionColumns).join(", "))
      const versionTypes = sql.literal(
        Object.entries(versionColumns).map(([name, type]) => `${name} ${type}`).join(", "),
      )

      /**
       * The event for the person's status that a newly granted Access needs: disabled or purged, since new Access must
       * not let in a person who may not sign in; enabled where the project's state still says disabled, since the
       * project did not hear of the person meanwhile (after 90 days without Access).
       */
      const standingFor = Effect.fnUntraced(function* (last: Last | null, next: Grant, person: Person) {
        if (kindOf(last, next) !== "access-granted") return null
        const standing = standingOf(person)
        if (standing !== null) return standing
        return (yield* positions.toldDisabled(next.projectId, person)) ? "account-enabled" : null
      })

      const entered = newRow(sql, "access", {
        id: "text",
        institution_id: "text",
        project_id: "text",
        person_id: "text",
        role: "text",
        state: "text",
        state_decided: "boolean",
        access_version: "integer",
        made_by: "text",
        approved_by: "text[]",
        created_at: "timestamptz",
        updated_at: "timestamptz",
      })
      const firstVersions = insertion(sql, "access_versions", versionColumns)

      const grant = Effect.fn("AccessVersions.grant")(function* (decision: AccessDecision, holder: Holder) {
        const { accessId, madeBy, projectId } = decision
        const person = { ...holder, canonical: holder.id, status: "active", removed: false } as const
        const standing = (yield* positions.toldDisabled(projectId, holder)) ? "account-enabled" : null
        const [eventId] = yield* positions.append(...factsOf(accessId, null, decision, person, madeBy, standing))
        const row = versionOf(accessId, 1, decision, decision, eventId!, yield* Clock.currentTimeMillis)
        const { access_id, digest, event_id: _, ...made } = row
        yield* fence(sql, entered({ ...made, id: access_id, state_decided: true, updated_at: made.created_at }))
        yield* add(sql, firstVersions, [row])
        return { accessVersion: 1, eventId: eventId!, digest }
      })

      const write = Effect.fnUntraced(function* (
        accessId: AccessId,
        last: Last | null,
        next: Grant,
        person: Person,
        { approvedBy, madeBy }: Makers,
      ) {
        const accessVersion = (last?.accessVersion ?? 0) + 1
        const standing = yield* standingFor(last, next, person)
        const [eventId] = yield* positions.append(...factsOf(accessId, last, next, person, madeBy, standing))
        const row = versionOf(
          accessId,
          accessVersion,
          next,
          { approvedBy, madeBy },
          eventId!,
          yield* Clock.currentTimeMillis,
        )
        yield* sql`
          with version as (
            insert into access_versions (${versionNames})
            select ${versionNames} from jsonb_to_record(${sql.json(row)}) r(${versionTypes})
          )
          update access set access_version = ${accessVersion} where id = ${accessId}`
        return { ...next, accessVersion, eventId: eventId!, digest: row.digest }
      })

      const settle = Effect.fn("AccessVersions.settle")(function* (accessId: AccessId, makers: Makers = ofFeed) {
        const [found] = yield* sql<Grant & { readonly removed: boolean; readonly last: Last | null }>`
          select a.institution_id as "institutionId", a.project_id as "projectId", a.person_id as "personId", a.role,
            case when a.removed then 'revoked' else a.state end as state, a.removed,
            case when v.access_id is not null then jsonb_build_object('institutionId', v.institution_id,
              'projectId', v.project_id, 'personId', v.person_id, 'role', v.role, 'state', v.state,
              'accessVersion', v.access_version, 'eventId', v.event_id, 'digest', v.digest) end as last
          from access a
          left join access_versions v on v.access_id = a.id and v.access_version = a.access_version
          where a.id = ${accessId} and a.institution_id is not null`
        if (found === undefined) return null
        const { last, removed, ...next } = found
        if (last === null ? removed : same(last, next)) return last
        const named = new Map(
          (yield* people.lock([next.personId, ...(last === null ? [] : [last.personId])])).map((p) => [p.id, p]),
        )
        const ended = last !== null && last.state === "active" && moved(last, next)
          ? yield* write(accessId, last, { ...last, state: "revoked" }, named.get(last.personId)!, makers)
          : last
        const person = named.get(next.personId)
        return person === undefined ? ended : yield* write(accessId, ended, next, person, makers)
      })

      const record = Effect.fn("AccessVersions.record")(function* (decision: AccessDecision) {
        const [person] = yield* people.lock([decision.personId])
        if (person === undefined) return yield* Effect.die(new Error("Access of a person that is not known"))
        const now = new Date(yield* Clock.currentTimeMillis)
        const row = {
          id: decision.accessId,
          institution_id: decision.institutionId,
          project_id: decision.projectId,
          person_id: decision.personId,
          role: decision.role,
          state: decision.state,
          made_by: decision.madeBy,
          approved_by: decision.approvedBy,
        }
        yield* sql`
          insert into access as t (id, institution_id, project_id, person_id, role, state, state_decided, made_by,
            approved_by, updated_at, created_at)
          select id, institution_id, project_id, person_id, role, state, true, made_by, approved_by, ${now}, ${now}
          from jsonb_to_record(${sql.json(row)}) r(id text, institution_id text, project_id text, person_id text,
            role text, state text, made_by text, approved_by text[])
          on conflict (id) do update
          set institution_id = excluded.institution_id, project_id = excluded.project_id,
            person_id = excluded.person_id, role = excluded.role, state = excluded.state, state_decided = true,
            removed = false, revision = t.revision + 1, made_by = excluded.made_by,
            approved_by = excluded.approved_by, updated_at = excluded.updated_at
          where (t.institution_id, t.project_id, t.person_id, t.role, t.state, t.removed) is distinct from
            (excluded.institution_id, excluded.project_id, excluded.person_id, excluded.role, excluded.state, false)`
        const version = yield* settle(decision.accessId, decision)
        if (version === null) return yield* Effect.die(new Error("Access without a version"))
        const { accessVersion, digest, eventId } = version
        return { accessVersion, eventId, digest }
      })

      return AccessVersions.of({ record, grant, settle })
    }),
  )
}
