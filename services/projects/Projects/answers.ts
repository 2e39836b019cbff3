/** Projects and launches as clients see them. */
import type * as Wire from "../../../schemas/identity/Projects.ts"
import { filedOf, type PolicyReviewRow, stamp } from "../../access/PolicyReviews.ts"
import type { RequestRow } from "../../access/RequestRows.ts"
import type { ProjectRow } from "./Rows.ts"

const common = (project: ProjectRow, reason: string) => ({
  project_id: project.id,
  institution_id: project.institution_id,
  client_id: project.client_id,
  name: project.name,
  website: project.website,
  connector_kind: project.connector_kind,
  connector_product: project.connector_product,
  preview_digest: project.preview_digest,
  environment: project.environment,
  redirect_uris: project.redirect_uris,
  post_logout_redirect_uris: project.post_logout_redirect_uris,
  backchannel_logout_uri: project.backchannel_logout_uri,
  requested_scopes: project.requested_scopes,
  reason,
  state: project.state,
  held_reason: project.held_reason,
  version: project.revision,
  created_at: stamp(project.created_at),
})

export const websiteOf = (project: ProjectRow, request: RequestRow, review: PolicyReviewRow): Wire.Website => ({
  ...filedOf(request, review),
  ...common(project, request.reason),
  owner_person_id: String(request.fields["owner_person_id"]),
})

export const withdrawnOf = (
  project: ProjectRow,
  made: { readonly reason: string; readonly eventId: string; readonly jobId: string | null },
): Wire.WithdrawnWebsite => ({ ...common(project, made.reason), event_id: made.eventId, job_id: made.jobId })

/** What a launch is bound to, as its request keeps it. */
export interface LaunchFields {
  readonly launch_url: string
  readonly project_version: number
  readonly preview_digest: string | null
}

export const launchFieldsOf = (request: RequestRow) => request.fields as unknown as LaunchFields

export const launchOf = (request: RequestRow, review: PolicyReviewRow): Wire.LaunchProposal => ({
  launch_id: request.id,
  project_id: request.project_id!,
  launch_url: launchFieldsOf(request).launch_url,
  reason: request.reason,
  project_version: launchFieldsOf(request).project_version,
  held_reason: request.held_reason,
  state: request.state as Wire.LaunchProposal["state"],
  ...filedOf(request, review),
})
