/** The views of projects and launches for clients. */
import { PersonId, type PolicyReviewId, type ProviderJobId } from "../../../schemas/BrandedIds.ts"
import type * as Wire from "../../../schemas/identity/Project.ts"
import { filedOf, type ReviewName, stamp } from "../../requests/PolicyReviews.ts"
import type { RequestRow } from "../../requests/RequestRows.ts"
import type { ProjectRow } from "./Rows.ts"

/** A project with the columns that are only read. */
export interface ReadRow extends ProjectRow {
  readonly installed_version: string | null
  readonly updated_at: Date
}

type Dates = "created_at" | "decided_at" | "expires_at" | "effective_at"

/** A request as PostgreSQL's JSON has it, with its newest review. */
export type ReadRequest =
  & Omit<RequestRow, Dates>
  & { readonly [Name in Dates]: string | (Name extends "created_at" ? never : null) }
  & { readonly review_id: PolicyReviewId | null; readonly required_roles: ReviewName["required_roles"] }

/** The decisions about a project, as PostgreSQL's JSON has them. */
export interface Beside {
  readonly registration: ReadRequest | null
  readonly launches: ReadonlyArray<ReadRequest> | null
  readonly owners: Wire.ProjectOwners["owners"] | null
}

const described = (project: ProjectRow) => ({
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
  state: project.state,
  held_reason: project.held_reason,
  version: project.revision,
  created_at: stamp(project.created_at),
})

const common = (project: ProjectRow, reason: string) => ({ ...described(project), reason })

export const websiteOf = (project: ProjectRow, request: RequestRow, review: ReviewName): Wire.Website => ({
  ...filedOf(request, review),
  ...common(project, request.reason),
  owner_person_id: PersonId.make(String(request.fields["owner_person_id"])),
})

export const withdrawnOf = (
  project: ProjectRow,
  made: { readonly reason: string; readonly eventId: string; readonly jobId: ProviderJobId | null },
): Wire.WithdrawnWebsite => ({ ...common(project, made.reason), event_id: made.eventId, job_id: made.jobId })

/** The fields of a launch's request: the project version and preview to which the launch is bound. */
export interface LaunchFields {
  readonly launch_url: string
  readonly project_version: number
  readonly preview_digest: string | null
}

export const launchFieldsOf = (request: RequestRow) => request.fields as unknown as LaunchFields

export const launchOf = (request: RequestRow, review: ReviewName | null): Wire.LaunchProposal => ({
  launch_id: request.id,
  project_id: request.project_id!,
  launch_url: launchFieldsOf(request).launch_url,
  reason: request.reason,
  project_version: launchFieldsOf(request).project_version,
  held_reason: request.held_reason,
  state: request.state as Wire.LaunchProposal["state"],
  ...filedOf(request, review),
})

export const listedOf = (project: ReadRow): Wire.ListedProject => ({
  ...described(project),
  rollout: project.rollout,
  launch_url: project.launch_url,
  installed_version: project.installed_version,
  updated_at: stamp(project.updated_at),
})

const dateOrNull = (text: string | null) => text === null ? null : new Date(text)
const stampOrNull = (text: string | null) => text === null ? null : stamp(new Date(text))

/** The request, its review, and the members that registrations and launches share. */
const readOf = ({ required_roles, review_id, ...row }: ReadRequest) => ({
  request: {
    ...row,
    created_at: new Date(row.created_at),
    decided_at: dateOrNull(row.decided_at),
    expires_at: dateOrNull(row.expires_at),
    effective_at: dateOrNull(row.effective_at),
  } satisfies RequestRow,
  review: review_id === null ? null : { id: review_id, required_roles },
  decided: { author_person_id: row.author, decided_at: stampOrNull(row.decided_at) },
})

const registrationOf = (row: ReadRequest): Wire.ProjectRegistration => {
  const { decided, request, review } = readOf(row)
  return {
    request_id: row.id,
    state: row.state as Wire.ProjectRegistration["state"],
    reason: row.reason,
    ...filedOf(request, review),
    ...decided,
  }
}

export const shownLaunchOf = (row: ReadRequest): Wire.ProjectLaunch => {
  const { decided, request, review } = readOf(row)
  return { ...launchOf(request, review), ...decided }
}

/** Owners whose times are as PostgreSQL's JSON has them. */
export const ownersOf = (rows: Wire.ProjectOwners["owners"]): Wire.ProjectOwners["owners"] =>
  rows.map((owner) => ({ ...owner, since: stampOrNull(owner.since) }))

/** A project with the decisions about it; without these for a caller who only has Access. */
export const projectOf = (project: ReadRow, beside: Beside | null): Wire.Project =>
  beside === null ? { ...listedOf(project), held_reason: null, registration: null, owners: null, launches: null } : {
    ...listedOf(project),
    registration: beside.registration === null ? null : registrationOf(beside.registration),
    owners: ownersOf(beside.owners ?? []),
    launches: (beside.launches ?? []).map(shownLaunchOf),
  }
