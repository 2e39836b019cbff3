/**
 * Lifecycle service grants: a project's owner proposes that a service may read the project's lifecycle, an independent
 * administrator approves, and either ends it at once (docs/requests.md). A repeated revocation is not refused: it
 * returns the grant as it is.
 *
 * The methods that change something run in the caller's transaction, which must be one of `Transact`. Ids are made
 * under the project's lock, in ascending order, so that forward paging misses none.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError, Statement } from "effect/sql"
import { type InstitutionId, type PersonId, type ProjectId, ServiceGrantId } from "../../schemas/BrandedIds.ts"
import type { GrantRead, LifecycleServiceProposal } from "../../schemas/identity/ServiceGrant.ts"
import { NotFound } from "../../schemas/problems/HttpProblems.ts"
import * as Problems from "../../schemas/problems/IdentityProblems.ts"
import { HTTPValidationError } from "../../schemas/Validation.ts"
import { isUuid } from "../../schemas/Wire.ts"
import { factsOf } from "../lifecycle/DeliveryStatus.ts"
import { EventLog } from "../lifecycle/EventLog.ts"
import { needs, owns, type ProjectStanding, roleRequired, Roles } from "../people/Roles.ts"
import { Audit } from "../platform/observability/Audit.ts"
import { Database } from "../platform/database/Database.ts"
import { Ids } from "../platform/Ids.ts"
import { mustBeOpen } from "../platform/database/Installation.ts"
import { environmentHeld } from "./ProjectRefusals.ts"
import { after, expiryOf, type GrantRow, mustFit, mustStand, type ProjectRow, stateOf, viewOf } from "./GrantRows.ts"

type StepUp = Effect.Effect<void, Problems.InsufficientUserAuthentication>
type RoleFault =
  | NotFound
  | Problems.AdministratorNotEffective
  | Problems.MembershipNotActive
  | Problems.NotCurrentSponsor
  | Problems.RoleRequired

/** The caller of a command, and its grant. */
export interface OnGrant {
  readonly personId: PersonId
  readonly projectId: ProjectId
  readonly grantId: ServiceGrantId
  readonly reason: string
}

export class ServiceGrants extends Context.Service<ServiceGrants, {
  readonly propose: (
    proposal: LifecycleServiceProposal & { readonly personId: PersonId; readonly projectId: ProjectId },
  ) => Effect.Effect<
    GrantRead,
    RoleFault | Problems.EnvironmentMismatch | Problems.InvalidState | HTTPValidationError | SqlError.SqlError
  >
  /** `stepUp` is checked after the caller's rights and before the state. */
  readonly approve: (
    approval: OnGrant & { readonly expectedVersion: number; readonly stepUp: StepUp },
  ) => Effect.Effect<
    GrantRead,
    | RoleFault
    | Problems.EnvironmentHeld
    | Problems.EnvironmentMismatch
    | Problems.FourEyesRequired
    | Problems.Held
    | Problems.InsufficientUserAuthentication
    | Problems.InvalidState
    | Problems.VersionConflict
    | SqlError.SqlError
  >
  readonly revoke: (revocation: OnGrant) => Effect.Effect<GrantRead, RoleFault | SqlError.SqlError>
  /** Ends one grant again, during recovery, as `system`; returns whether it was live. */
  readonly end: (grantId: ServiceGrantId, reason: string) => Effect.Effect<boolean, SqlError.SqlError>
  /** Ends every live grant of a withdrawn project; `by` is a person, or null for the directory. Returns how many. */
  readonly revokeAll: (projectId: ProjectId, by: PersonId | null, reason: string) => Effect.Effect<number, SqlError.SqlError>
  /** At most `limit` grants, ascending, after the one of `afterId`. */
  readonly list: (
    page: {
      readonly personId: PersonId
      readonly projectId: ProjectId
      readonly limit: number
      readonly afterId: string | null
    },
  ) => Effect.Effect<ReadonlyArray<GrantRead>, RoleFault | SqlError.SqlError>
}>()("bailiwick/services/access/ServiceGrants") {
  /**
   * `issuers`: the issuers whose tokens services may use; a proposal without an issuer means the only one. `everybody`:
   * any other issuer is accepted as well (DEMO).
   */
  static readonly layer = (
    { everybody = false, issuers }: { readonly issuers: ReadonlyArray<string>; readonly everybody?: boolean },
  ) =>
    Layer.effect(
      ServiceGrants,
      Effect.gen(function* () {
        const { sql } = yield* Database
        const audit = yield* Audit
        const ids = yield* Ids
        const positions = yield* EventLog
        const roles = yield* Roles
        const facts = factsOf(sql)

        const columns = sql.literal(`g.id::text as id, g.project_id, g.service_id, g.service_issuer, g.capabilities,
          g.environment, g.state, g.revision, g.reason, g.proposed_by, g.proposed_at, g.approved_by, g.approved_at,
          g.approval_event_id::text as decision_event_id, g.revoked_by, g.revoked_at, g.expires_at`)

        const read = Effect.fnUntraced(function* (where: Statement.Fragment) {
          const now = yield* Clock.currentTimeMillis
          const rows = yield* sql<Parameters<typeof viewOf>[0]>`
            select ${columns}, ${facts.columns}, p.installed_version,
              (p.removed or p.state = 'withdrawn' or p.environment <> g.environment) as dead,
              exists (
                select from lifecycle_streams t
                where (t.project_id, t.service_issuer, t.service_id) = (g.project_id, g.service_issuer, g.service_id)
                  and t.delivery = 'push' and t.status = 'enabled') as pushed
            from service_grants g join projects p on p.id = g.project_id
            left join lifecycle_told e on e.id = g.approval_event_id
            ${facts.joins}
            where ${where}`
          return rows.map((row) => viewOf(row, everybody || issuers.includes(row.service_issuer), now))
        })
        const one = (id: ServiceGrantId) => Effect.map(read(sql`g.id = ${id}::uuid`), ([grant]) => grant!)

        const recorded = (action: string, grantId: ServiceGrantId, personId: PersonId | null, projectId: ProjectId) =>
          audit.append({
            action: `service-grant.${action}`,
            actor: personId === null ? "system" : `person:${personId}`,
            subject: `service-grant:${grantId}`,
            outcome: "done",
            details: { project: projectId },
          })

        const mustAdminister = ({ institution }: ProjectStanding) =>
          institution === null
            ? Effect.fail(roleRequired("an effective administrator of the project's institution"))
            : needs(institution, "administrator")

        /** The project, which the caller's standing has locked. */
        const projectOf = Effect.fnUntraced(function* (projectId: ProjectId) {
          const [project] = yield* sql<ProjectRow>`
            select state, rollout, environment, institution_id from projects where id = ${projectId} and not removed`
          return project ?? (yield* new NotFound())
        })

        const lockGrant = Effect.fnUntraced(function* ({ grantId, projectId }: OnGrant) {
          if (!isUuid(grantId)) return yield* new NotFound()
          const [grant] = yield* sql<GrantRow>`
            select ${columns} from service_grants g
            where g.id = ${grantId}::uuid and g.project_id = ${projectId} for update`
          return grant ?? (yield* new NotFound())
        })

        const issuerOf = (asked: string | null | undefined): Effect.Effect<string, HTTPValidationError> => {
          if (asked != null) return Effect.succeed(asked)
          const [only, ...others] = issuers
          return only !== undefined && others.length === 0
            ? Effect.succeed(only)
            : Effect.fail(HTTPValidationError.at(["body", "service_issuer"], "missing", "Field required"))
        }

        const nextId = Effect.fnUntraced(function* (projectId: ProjectId) {
          const [last] = yield* sql<{ id: string }>`
            select id::text as id from service_grants where project_id = ${projectId} order by id desc limit 1`
          return ServiceGrantId.make(after(yield* ids.next, last?.id))
        })

        const propose: ServiceGrants["Service"]["propose"] = Effect.fn("ServiceGrants.propose")(
          function* ({ personId, projectId, ...proposal }) {
            yield* owns(yield* roles.toProject(personId, projectId, "update"))
            const now = yield* Clock.currentTimeMillis
            const expires = yield* expiryOf(proposal.expires_at, now)
            const issuer = yield* issuerOf(proposal.service_issuer)
            const project = yield* projectOf(projectId)
            yield* mustStand(project)
            yield* mustFit(project, proposal.environment)
            const id = yield* nextId(projectId)
            yield* sql`
              insert into service_grants (id, project_id, service_id, service_issuer, capabilities, environment, state,
                revision, reason, proposed_by, proposed_at, expires_at)
              values (${id}::uuid, ${projectId}, ${proposal.service_id}, ${issuer},
                ${[...proposal.capabilities]}::text[], ${proposal.environment}, 'proposed', 1, ${proposal.reason},
                ${personId}, ${new Date(now)}, ${expires})`
            yield* recorded("propose", id, personId, projectId)
            return yield* one(id)
          },
        )

        const tell = (
          kind: "service-grant-approved" | "service-grant-revoked",
          grant: GrantRow,
          institutionId: InstitutionId,
          personId: PersonId | null,
        ) =>
          Effect.map(
            positions.append({
              kind,
              projectId: grant.project_id,
              institutionId,
              payload: {
                grant: {
                  grant_id: grant.id,
                  service_id: grant.service_id,
                  service_issuer: grant.service_issuer,
                  capabilities: grant.capabilities,
                  environment: grant.environment,
                  expires_at: grant.expires_at?.toISOString() ?? null,
                },
              },
              initiatedBy: personId === null ? "system" : "admin",
            }),
            ([eventId]) => eventId!,
          )

        const approve: ServiceGrants["Service"]["approve"] = Effect.fn("ServiceGrants.approve")(
          function* ({ expectedVersion, personId, projectId, reason, stepUp, ...which }) {
            const standing = yield* roles.toProject(personId, projectId, "update")
            const project = yield* projectOf(projectId)
            const grant = yield* lockGrant({ ...which, personId, projectId, reason })
            yield* mustAdminister(standing)
            // The proposer acted as an owner of the project.
            if (!(yield* roles.independent(personId, grant.proposed_by, projectId))) {
              return yield* yield* roles.fourEyes(personId, grant.proposed_by, projectId)
            }
            if (project.rollout !== null) return yield* environmentHeld(projectId, project.rollout)
            yield* mustBeOpen(sql)
            yield* stepUp
            const now = new Date(yield* Clock.currentTimeMillis)
            const state = project.state === "withdrawn" ? "withdrawn" : stateOf(grant, now.getTime())
            if (state !== "proposed") return yield* new Problems.InvalidState({ state, allowed: ["proposed"] })
            if (grant.revision !== expectedVersion) {
              return yield* new Problems.VersionConflict({ current_version: grant.revision })
            }
            yield* mustFit(project, grant.environment)
            const eventId = yield* tell("service-grant-approved", grant, project.institution_id, personId)
            yield* sql`
              update service_grants set state = 'approved', revision = revision + 1, approved_by = ${personId},
                approved_at = ${now}, approval_reason = ${reason}, approval_event_id = ${eventId}::uuid
              where id = ${grant.id}::uuid and revision = ${grant.revision}`
            yield* recorded("approve", grant.id, personId, projectId)
            return yield* one(grant.id)
          },
        )

        const close = Effect.fnUntraced(
          function* (grant: GrantRow, institutionId: InstitutionId, personId: PersonId | null, reason: string) {
            const now = new Date(yield* Clock.currentTimeMillis)
            const told = grant.approved_at === null
              ? null
              : yield* tell("service-grant-revoked", grant, institutionId, personId)
            // The column holds the newest decision's event: delivery and acknowledgement are now those of the
            // revocation.
            yield* sql`
              update service_grants set state = 'revoked', revision = revision + 1, revoked_by = ${personId},
                revoked_at = ${now}, revocation_reason = ${reason}, approval_event_id = ${told}::uuid
              where id = ${grant.id}::uuid and revision = ${grant.revision}`
            yield* recorded("revoke", grant.id, personId, grant.project_id)
          },
        )

        const revoke: ServiceGrants["Service"]["revoke"] = Effect.fn("ServiceGrants.revoke")(
          function* (which) {
            const { personId, projectId, reason } = which
            const standing = yield* roles.toProject(personId, projectId, "update")
            const project = yield* projectOf(projectId)
            const grant = yield* lockGrant(which)
            if (!standing.owner) yield* mustAdminister(standing)
            if (grant.state !== "revoked") yield* close(grant, project.institution_id, personId, reason)
            return yield* one(grant.id)
          },
        )

        const revokeAll = Effect.fn("ServiceGrants.revokeAll")(
          function* (projectId: ProjectId, by: PersonId | null, reason: string) {
            const live = yield* sql<GrantRow & { readonly institution_id: InstitutionId }>`
              select ${columns}, p.institution_id from service_grants g join projects p on p.id = g.project_id
              where g.project_id = ${projectId} and g.state <> 'revoked' order by g.id for update of g`
            for (const { institution_id, ...grant } of live) yield* close(grant, institution_id, by, reason)
            return live.length
          },
        )

        const end = Effect.fn("ServiceGrants.end")(function* (grantId: ServiceGrantId, reason: string) {
          const [live] = isUuid(grantId)
            ? yield* sql<GrantRow & { readonly institution_id: InstitutionId }>`
              select ${columns}, p.institution_id from service_grants g join projects p on p.id = g.project_id
              where g.id = ${grantId}::uuid and g.state <> 'revoked' for update of g`
            : []
          if (live === undefined) return false
          const { institution_id, ...grant } = live
          yield* close(grant, institution_id, null, reason)
          return true
        })

        const list: ServiceGrants["Service"]["list"] = Effect.fn("ServiceGrants.list")(
          function* ({ afterId, limit, personId, projectId }) {
            const standing = yield* roles.toProject(personId, projectId, "none")
            if (!standing.owner && !standing.operator) yield* mustAdminister(standing)
            return yield* read(sql`g.project_id = ${projectId} and (${afterId}::uuid is null or g.id > ${afterId}::uuid)
              order by g.id limit ${limit}`)
          },
        )

        return ServiceGrants.of({ propose, approve, revoke, end, revokeAll, list })
      }),
    )
}
