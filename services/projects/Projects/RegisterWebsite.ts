/** Registers a website as a project, with a first owner; reviews and the provider come later. */
import { Effect } from "effect"
import { type InstitutionId, type PersonId, ProjectId, RequestId } from "../../../schemas/BrandedIds.ts"
import type * as Wire from "../../../schemas/identity/Project.ts"
import { PolicyReviews } from "../../requests/PolicyReviews.ts"
import { requestRows } from "../../requests/RequestRows.ts"
import { EventLog } from "../../lifecycle/EventLog.ts"
import { persons } from "../../people/PersonAudience.ts"
import { needs, Roles } from "../../people/Roles.ts"
import { Database } from "../../platform/database/Database.ts"
import { Ids } from "../../platform/Ids.ts"
import { owners } from "../Owners.ts"
import { ProviderJobs } from "../ProviderJobs.ts"
import { ownerNotActive } from "../../access/ProjectRefusals.ts"
import { websiteOf } from "./ProjectViews.ts"
import { type NewProject, newProjects } from "./NewProjectRow.ts"
import { ownerRows } from "./OwnerRows.ts"
import { projectRecords } from "./ProjectRecords.ts"

type Registration = Wire.WebsiteRegistration & { readonly personId: PersonId; readonly institutionId: InstitutionId }

const rowOf = (asked: Registration, id: ProjectId): NewProject => ({
  id,
  institution_id: asked.institutionId,
  name: asked.name,
  website: asked.website,
  environment: asked.environment,
  connector_kind: asked.connector_kind,
  connector_product: asked.connector_product ?? null,
  preview_digest: asked.preview_digest ?? null,
  redirect_uris: [...new Set(asked.redirect_uris)],
  post_logout_redirect_uris: [...new Set(asked.post_logout_redirect_uris)],
  backchannel_logout_uri: asked.backchannel_logout_uri ?? null,
  requested_scopes: [...new Set(asked.requested_scopes)],
  made_by: asked.personId,
})

export const registerWebsite = Effect.gen(function* () {
  const { sql } = yield* Database
  const ids = yield* Ids
  const jobs = yield* ProviderJobs
  const eventLog = yield* EventLog
  const reviews = yield* PolicyReviews
  const roles = yield* Roles
  const record = yield* projectRecords
  const people = persons(sql)
  const newProject = newProjects(sql)
  const ownership = ownerRows(sql)
  const requests = requestRows(sql)
  const { appendMissing: appendOwnerEvents } = owners(sql, eventLog)

  return Effect.fn("Projects.register")(
    function* (asked: Registration) {
      const { environment, institutionId, owner_person_id, personId, reason } = asked
      const known = yield* people.lock([personId, owner_person_id])
      yield* needs(yield* roles.inInstitution(personId, institutionId), "sponsor", "administrator")
      const owner = known.find(({ id }) => id === owner_person_id)
      if (owner === undefined || owner.removed || owner.status !== "active" || owner.canonical !== owner.id) {
        return yield* ownerNotActive(owner_person_id)
      }
      const [projectId, requestId] = yield* ids.batch(2)
      const project = yield* newProject.insert(rowOf(asked, ProjectId.make(projectId!)))
      if (project === null) return yield* yield* newProject.twin(institutionId, asked)
      const jobId = yield* jobs.add({ kind: "client.create", projectId: project.id, blocked: true })
      const [eventId] = yield* eventLog.append({
        kind: "project-registered",
        projectId: project.id,
        institutionId,
        payload: { project: { version: project.revision, environment } },
        initiatedBy: "admin",
      })
      const ownerId = yield* ownership.set(project.id, owner.id, true, personId)
      yield* appendOwnerEvents("id", [ownerId])
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
      yield* record("project.registered", personId, project)
      return websiteOf(project, request, review)
    },
  )
})
