/** Registers websites and proposes their launches. */
import { Effect } from "effect"
import { type InstitutionId, type PersonId, ProjectId, RequestId } from "../../../schemas/BrandedIds.ts"
import { isLocal } from "../../../schemas/identity/Addresses.ts"
import type * as Wire from "../../../schemas/identity/Project.ts"
import { InvalidState, LaunchUrlUnverified } from "../../../schemas/problems/IdentityProblems.ts"
import { NotFound } from "../../../schemas/problems/HttpProblems.ts"
import { HTTPValidationError } from "../../../schemas/Validation.ts"
import { type Decision, PolicyReviews } from "../../requests/PolicyReviews.ts"
import { type RequestRow, requestRows } from "../../requests/RequestRows.ts"
import { EventLog } from "../../lifecycle/EventLog.ts"
import { persons } from "../../people/PersonAudience.ts"
import { needs, owns, Roles } from "../../people/Roles.ts"
import { Audit } from "../../platform/observability/Audit.ts"
import { Database } from "../../platform/database/Database.ts"
import { Ids } from "../../platform/Ids.ts"
import { owners } from "../Owners.ts"
import { ProviderJobs } from "../ProviderJobs.ts"
import { environmentHeld, ownerNotActive } from "../../access/ProjectRefusals.ts"
import { launchOf, websiteOf } from "./ProjectViews.ts"
import { closings } from "./CloseRequests.ts"
import { mayLaunchAt } from "./Launches.ts"
import { newProjects } from "./NewProjectRow.ts"
import { ownerRows } from "./OwnerRows.ts"
import { projectRows } from "./Rows.ts"

const launchable: ReadonlyArray<string> = ["registered", "launch_proposed", "held"]

export const registrations = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  const { close } = yield* closings
  const ids = yield* Ids
  const jobs = yield* ProviderJobs
  const positions = yield* EventLog
  const reviews = yield* PolicyReviews
  const roles = yield* Roles
  const people = persons(sql)
  const made = newProjects(sql)
  const ownership = ownerRows(sql)
  const projects = projectRows(sql)
  const requests = requestRows(sql)
  const { settle: tellOwners } = owners(sql, positions)

  const recorded = (action: string, personId: PersonId, projectId: ProjectId, institutionId: InstitutionId) =>
    audit.append({
      action,
      actor: `person:${personId}`,
      subject: `project:${projectId}`,
      outcome: "done",
      details: { institution: institutionId },
    })

  const register = Effect.fn("Projects.register")(
    function* (
      asked: Wire.WebsiteRegistration & { readonly personId: PersonId; readonly institutionId: InstitutionId },
    ) {
      const { environment, institutionId, owner_person_id, personId, reason } = asked
      const known = yield* people.lock([personId, owner_person_id])
      yield* needs(yield* roles.inInstitution(personId, institutionId), "sponsor", "administrator")
      const owner = known.find(({ id }) => id === owner_person_id)
      if (owner === undefined || owner.removed || owner.status !== "active" || owner.canonical !== owner.id) {
        return yield* ownerNotActive(owner_person_id)
      }
      const [projectId, requestId] = yield* ids.batch(2)
      const project = yield* made.insert({
        id: ProjectId.make(projectId!),
        institution_id: institutionId,
        name: asked.name,
        website: asked.website,
        environment,
        connector_kind: asked.connector_kind,
        connector_product: asked.connector_product ?? null,
        preview_digest: asked.preview_digest ?? null,
        redirect_uris: [...new Set(asked.redirect_uris)],
        post_logout_redirect_uris: [...new Set(asked.post_logout_redirect_uris)],
        backchannel_logout_uri: asked.backchannel_logout_uri ?? null,
        requested_scopes: [...new Set(asked.requested_scopes)],
        made_by: personId,
      })
      if (project === null) return yield* yield* made.twin(institutionId, asked)
      const jobId = yield* jobs.add({ kind: "client.create", projectId: project.id, held: true })
      const [eventId] = yield* positions.append({
        kind: "project-registered",
        projectId: project.id,
        institutionId,
        payload: { project: { version: project.revision, environment } },
        initiatedBy: "admin",
      })
      const ownerId = yield* ownership.set(project.id, owner.id, true, personId)
      yield* tellOwners("id", [ownerId])
      const filed = (yield* requests.insert({
        id: RequestId.make(requestId!),
        kind: "website",
        state: "submitted",
        author: personId,
        institutionId,
        projectId: project.id,
        fields: { owner_person_id, owner_id: ownerId },
        reason,
        eventId: eventId!,
      }))!
      const request = yield* requests.change(filed, { jobId })
      const review = yield* reviews.open(
        request,
        environment === "production" ? ["administrator", "operator"] : ["administrator"],
      )
      yield* recorded("project.registered", personId, project.id, institutionId)
      return websiteOf(project, request, review)
    },
  )

  /** Carries out a registration: releases the provider's job, and records the signers on the project and its owner. */
  const approve = Effect.fnUntraced(function* ({ approvedBy, request }: Decision) {
    const project = yield* projects.lock(request.project_id!)
    if (project === null || project.state === "withdrawn") {
      return yield* new InvalidState({ state: "withdrawn", allowed: launchable })
    }
    if (project.rollout !== null) return yield* environmentHeld(project.id, project.rollout)
    const signed = [...approvedBy]
    yield* sql`update projects set approved_by = ${signed}::text[] where id = ${project.id}`
    // Not where an administrator changed the owner meanwhile: then the row is not the registered one.
    yield* sql`
      update project_owners set approved_by = ${signed}::text[]
      where id = ${String(request.fields["owner_id"])} and made_by = ${request.author} and revision = 1`
    yield* jobs.release(project.id)
    yield* requests.change(request, { state: "approved", resultId: project.id })
  })

  const proposeLaunch = Effect.fn("Projects.proposeLaunch")(
    function* (
      { launch_url, personId, projectId, reason }: Wire.LaunchCreate & {
        readonly personId: PersonId
        readonly projectId: ProjectId
      },
    ) {
      yield* projects.turn(projectId)
      const standing = yield* roles.toProject(personId, projectId)
      yield* owns(standing)
      const [{ verified_domains } = { verified_domains: [] }] = yield* sql<{ verified_domains: Array<string> }>`
        select verified_domains from institutions where id = ${standing.institutionId} and not removed for share`
      const project = yield* projects.lock(projectId)
      if (project === null) return yield* new NotFound()
      if (project.rollout !== null) return yield* environmentHeld(project.id, project.rollout)
      if (!launchable.includes(project.state)) {
        return yield* new InvalidState({ state: project.state, allowed: launchable })
      }
      if (isLocal(launch_url) && project.environment === "production") {
        return yield* HTTPValidationError.at(
          ["body", "launch_url"],
          "value_error",
          "Value error, http://localhost is for staging only",
        )
      }
      if (!mayLaunchAt(launch_url, project, verified_domains)) {
        const [first, ...others] = verified_domains
        return yield* new LaunchUrlUnverified({
          detail: first === undefined
            ? "The institution has no verified domain: an operator has to verify one first."
            : `Launch at, or under, one of the verified domains of the institution: ${[first, ...others].join(", ")}.`,
        })
      }
      yield* close(projectId, "launches")
      const proposed = yield* projects.change(project, { state: "launch_proposed" })
      const request: RequestRow = (yield* requests.insert({
        id: RequestId.make(yield* ids.next),
        kind: "launch",
        state: "proposed",
        author: personId,
        institutionId: project.institution_id,
        projectId,
        fields: { launch_url, project_version: proposed.revision, preview_digest: project.preview_digest },
        reason,
      }))!
      const review = yield* reviews.open(request, ["administrator"])
      yield* recorded("project.launch-proposed", personId, projectId, project.institution_id)
      return launchOf(request, review)
    },
  )

  return { register, approve, proposeLaunch }
})
