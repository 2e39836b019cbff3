/**
 * Revokes again what the lost history had revoked, each by the service that owns it, in a transaction of its own that
 * also appends the event in the new epoch and records it. May be repeated: what is gone already stays as it is.
 */
import { Clock, Effect } from "effect"
import {
  AccessId,
  AccessReviewId,
  InstitutionId,
  PersonId,
  type ProjectId,
  ServiceGrantId,
} from "../../schemas/BrandedIds.ts"
import { AccessReviews } from "../access/AccessReviews.ts"
import { AccessVersions } from "../access/AccessVersions.ts"
import { ServiceGrants } from "../access/ServiceGrants.ts"
import { disabling } from "../people/DisablePerson.ts"
import { Audit } from "../platform/observability/Audit.ts"
import { Database } from "../platform/database/Database.ts"
import { run } from "../platform/database/UnitOfWork.ts"
import { removals } from "../projects/ReapplyRemovals.ts"
import { Rollouts } from "../projects/Rollouts.ts"
import type { LostChange } from "./LostHistory.ts"

/** The reason, in the audit and for commands that ask for a reason. */
const reason = "decided before the database was put back"

type Json = LostChange["value"] | undefined

const at = (value: Json, ...path: ReadonlyArray<string>): Json =>
  path.reduce<Json>(
    (inner, name) =>
      inner !== null && typeof inner === "object" && !Array.isArray(inner)
        ? (inner as { readonly [key: string]: Json })[name]
        : undefined,
    value,
  )
const text = (value: Json): string | null => typeof value === "string" ? value : null

const roleIn = (payload: Json): string => text(at(payload, "access", "role")) ?? "user"

/** The `person_id` of an Access whose person is not known. No person has it. */
const unknownPerson = ""

interface Access {
  readonly institution_id: InstitutionId
  readonly project_id: ProjectId
  readonly person_id: PersonId
  readonly role: string
  readonly state: "active" | "revoked"
}

export const reapplying = Effect.gen(function* () {
  const database = yield* Database
  const { sql } = database
  const accessVersions = yield* AccessVersions
  const accessReviews = yield* AccessReviews
  const audit = yield* Audit
  const { disable } = yield* disabling
  const grants = yield* ServiceGrants
  const { disown, withdraw } = yield* removals
  const rollouts = yield* Rollouts

  const identityOf = ({ subId }: LostChange["event"]) => {
    const user = at(subId, "user") ?? subId
    const [issuer, subject] = [text(at(user, "iss")), text(at(user, "sub"))]
    return issuer === null || subject === null ? null : { issuer, subject }
  }

  const institutionOf = ({ subId }: LostChange["event"]) => {
    const id = text(at(subId, "tenant", "id"))
    return id === null ? null : InstitutionId.make(id)
  }

  const personOf = Effect.fnUntraced(function* (event: LostChange["event"]) {
    const identity = identityOf(event)
    if (identity === null) return null
    const [row] = yield* sql<{ id: PersonId }>`
      select id from people where issuer = ${identity.issuer} and subject = ${identity.subject}
      union all select person_id from identities
      where issuer = ${identity.issuer} and subject = ${identity.subject} limit 1`
    return row?.id ?? null
  })

  /**
   * Records an Access as revoked whose person was lost as well: should the directory send the person and this Access
   * again, it stays revoked.
   */
  const foreclose = Effect.fnUntraced(function* (
    accessId: AccessId,
    institutionId: InstitutionId,
    projectId: ProjectId,
    { payload }: LostChange["event"],
  ) {
    const now = new Date(yield* Clock.currentTimeMillis)
    const made = yield* sql`
      insert into access (id, institution_id, project_id, person_id, role, state, state_decided, updated_at, created_at)
      values (${accessId}, ${institutionId}, ${projectId}, ${unknownPerson}, ${
      roleIn(payload)
    }, 'revoked', true, ${now}, ${now})
      on conflict do nothing returning 1`
    return made.length > 0
  })

  /**
   * Revokes an Access that the lost history revoked, or that had another role there than it has here: which of two
   * roles is meant is for people to decide. An Access that was granted and revoked in the lost time is recorded as
   * revoked, lest the directory bring it back.
   */
  const access = Effect.fnUntraced(function* (accessId: AccessId, { event, projectId, value }: LostChange) {
    const [row] = yield* sql<Access>`
      select institution_id, project_id, person_id, role, case when removed then 'revoked' else state end as state
      from access where id = ${accessId} and institution_id is not null for update`
    if (row === undefined && value !== null) return false
    if (row !== undefined && (row.state === "revoked" || value !== null && at(value, "role") === row.role)) return false
    const institutionId = row?.institution_id ?? institutionOf(event)
    const personId = row?.person_id ?? (yield* personOf(event))
    if (institutionId === null) return false
    if (personId === null) return yield* foreclose(accessId, institutionId, projectId, event)
    yield* accessVersions.record({
      accessId,
      institutionId,
      personId,
      projectId: row?.project_id ?? projectId,
      state: "revoked",
      role: row?.role ?? roleIn(event.payload),
      madeBy: null,
      approvedBy: [],
    })
    return true
  })

  /** Applies one change of the lost history; returns whether it changed anything. */
  const one = Effect.fnUntraced(function* (change: LostChange) {
    const { event, key, projectId, value } = change
    const [what, ...rest] = key.split("/")
    const id = rest.join("/")
    switch (what) {
      case "access":
        return yield* access(AccessId.make(id), change)
      case "person": {
        const identity = value === null ? null : identityOf(event)
        return identity !== null && (yield* disable(identity)) !== null
      }
      case "owner":
        return value === null && (yield* disown(projectId, PersonId.make(id)))
      case "service_grant":
        return value === null && (yield* grants.end(ServiceGrantId.make(id), reason))
      case "review":
        return value === null && (yield* accessReviews.end(AccessReviewId.make(id), reason))
      case "project":
        return at(value, "status") === "withdrawn" && (yield* withdraw(projectId, reason))
      default:
        return false
    }
  })

  const recorded = (subject: string, details: Readonly<Record<string, string>>) =>
    audit.append({ action: "recovery.reapplied", actor: "system", subject, outcome: "done", details, decision: true })

  /** Revokes again what a change of the lost history had revoked; returns whether it was there. */
  const reapply = Effect.fn("Reapplied.reapply")((change: LostChange) =>
    run(Effect.gen(function* () {
      if (!(yield* one(change))) return false
      const { event: { id, kind }, projectId } = change
      yield* recorded(`project:${projectId}`, { event: id, kind })
      return true
    })).pipe(Effect.provideService(Database, database))
  )

  /** Holds a project whose rollout failed in the lost time: it activates nothing until an operator has looked. */
  const hold = Effect.fn("Reapplied.hold")((projectId: ProjectId) =>
    run(Effect.gen(function* () {
      const held = yield* rollouts.set(projectId, "hold", reason).pipe(
        Effect.catchTags({ NotFound: () => Effect.succeed(null), InvalidState: () => Effect.succeed(null) }),
      )
      if (held === null) return false
      yield* recorded(`project:${projectId}`, { kind: "rollout-failed" })
      return true
    })).pipe(Effect.provideService(Database, database))
  )

  return { reapply, hold }
})
