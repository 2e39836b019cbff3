/** Websites, which are projects: registered, launched, owned, withdrawn (docs/requests.md). */
import { Effect, Schema } from "effect"
import { InstitutionId, PersonId, ProjectId, RequestId } from "../BrandedIds.ts"
import { BodyBooleanOr, BodyInt, maxCodePoints, minCodePoints, Text } from "../Validation/Scalars.ts"
import { Timestamp } from "../Wire.ts"
import { isLocal, plain, PlainUri } from "./Addresses.ts"
import { ConnectorKind, Environment, ProjectState } from "./IdentityDirectory.ts"
import { DecisionReason } from "./DecisionReason.ts"
import { filed } from "./RequestBodies.ts"

const orNull = Schema.NullOr
const orAbsent = <S extends Schema.Constraint>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

const Uris = Schema.Array(PlainUri).check(Schema.isMaxLength(16))

export const Scope = Schema.Literals(["openid", "profile", "email"])

interface Uris {
  readonly environment: "staging" | "production"
  readonly redirect_uris?: ReadonlyArray<string>
  readonly post_logout_redirect_uris?: ReadonlyArray<string>
  readonly backchannel_logout_uri?: string | null
}

const inTheClear = (body: Uris) => {
  if (body.environment !== "production") return []
  const found = (uri: string | null | undefined, ...path: ReadonlyArray<string | number>) =>
    uri != null && isLocal(uri) ? [{ path, issue: "http://localhost is for staging only" }] : []
  return [
    ...(body.redirect_uris ?? []).flatMap((uri, i) => found(uri, "redirect_uris", i)),
    ...(body.post_logout_redirect_uris ?? []).flatMap((uri, i) => found(uri, "post_logout_redirect_uris", i)),
    ...found(body.backchannel_logout_uri, "backchannel_logout_uri"),
  ]
}

export const WebsiteRegistration = Schema.Struct({
  name: Text(2, 200),
  website: Text(8, 2048),
  connector_kind: ConnectorKind.annotate({ default: "standard_oidc" }).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed<typeof ConnectorKind.Type>("standard_oidc")),
  ),
  connector_product: orAbsent(Schema.String),
  preview_digest: orAbsent(Schema.String),
  owner_person_id: PersonId.check(minCodePoints(1)),
  environment: Environment,
  redirect_uris: Schema.optionalKey(Uris),
  post_logout_redirect_uris: Schema.optionalKey(Uris),
  backchannel_logout_uri: orAbsent(PlainUri),
  /** Repeats collapse. */
  requested_scopes: Schema.Array(Scope).check(Schema.isMinLength(1), Schema.isMaxLength(3)),
  reason: DecisionReason,
}).check(Schema.makeFilter(inTheClear, { toJsonSchema: () => [{}, true] })).annotate({
  identifier: "WebsiteRegistration",
})
export type WebsiteRegistration = typeof WebsiteRegistration.Type

export const Transition = Schema.Struct({ expected_version: BodyInt({ min: 1 }), reason: DecisionReason })
  .annotate({ identifier: "Transition" })
export type Transition = typeof Transition.Type

export const LaunchCreate = Schema.Struct({
  reason: DecisionReason,
  launch_url: Schema.String.check(maxCodePoints(2048), plain),
}).annotate({ identifier: "LaunchCreate" })
export type LaunchCreate = typeof LaunchCreate.Type

export const OwnerChange = Schema.Struct({
  reason: DecisionReason,
  person_id: PersonId,
  active: BodyBooleanOr(true),
}).annotate({ identifier: "OwnerChange" })
export type OwnerChange = typeof OwnerChange.Type

const described = {
  project_id: ProjectId,
  institution_id: InstitutionId,
  /** The provider's client, once it has one. */
  client_id: orNull(Schema.String),
  name: Schema.String,
  website: Schema.String,
  connector_kind: ConnectorKind,
  connector_product: orNull(Schema.String),
  preview_digest: orNull(Schema.String),
  environment: Environment,
  redirect_uris: Schema.Array(Schema.String),
  post_logout_redirect_uris: Schema.Array(Schema.String),
  backchannel_logout_uri: orNull(Schema.String),
  requested_scopes: Schema.Array(Schema.String),
  state: ProjectState,
  /** Why the project is held. */
  held_reason: orNull(Schema.String),
}

const website = { ...described, reason: Schema.String }

export const Website = Schema.Struct({ ...website, owner_person_id: PersonId, ...filed })
  .annotate({ identifier: "Website" })
export type Website = typeof Website.Type

export const WithdrawnWebsite = Schema.Struct({
  ...website,
  version: filed.version,
  created_at: filed.created_at,
  event_id: filed.event_id,
  job_id: filed.job_id,
}).annotate({ identifier: "WithdrawnWebsite" })
export type WithdrawnWebsite = typeof WithdrawnWebsite.Type

export const LaunchProposal = Schema.Struct({
  launch_id: RequestId,
  project_id: ProjectId,
  launch_url: Schema.String,
  reason: Schema.String,
  /** The project's version that the proposal is bound to. */
  project_version: Schema.Int,
  /** The condition that an approved launch still waits for. */
  held_reason: orNull(Schema.String),
  state: Schema.Literals(["proposed", "approved", "launched", "held", "declined", "superseded"]),
  ...filed,
}).annotate({ identifier: "LaunchProposal" })
export type LaunchProposal = typeof LaunchProposal.Type

const ProjectOwner = Schema.Struct({ person_id: PersonId, active: Schema.Boolean, since: orNull(Timestamp) }).annotate({
  identifier: "ProjectOwner",
})

export const ProjectOwners = Schema.Struct({
  project_id: ProjectId,
  version: Schema.Int,
  owners: Schema.Array(
    ProjectOwner,
  ),
}).annotate({ identifier: "ProjectOwners" })
export type ProjectOwners = typeof ProjectOwners.Type

/** A project's present state. */
const project = {
  ...described,
  client_id: described.client_id.annotate({
    description: "The client at the identity provider; null until the provider's job has made it.",
    examples: ["0199f3a2-7c1e-7d0a-9b55-0d5c2f3e8a11"],
  }),
  held_reason: described.held_reason.annotate({
    description:
      "Why the project is held: what its approved launch waits for, or the operator's reason for holding a rollout.",
    examples: ["client_not_provisioned"],
  }),
  rollout: orNull(Schema.Literals(["hold", "fail"])).annotate({
    description: "A rollout that an operator holds, or that failed: nothing new is activated until its release.",
  }),
  launch_url: orNull(Schema.String).annotate({ description: "The URL of the last launch.", format: "uri" }),
  installed_version: orNull(Schema.String).annotate({ description: "The connector version that the product runs." }),
  version: Schema.Int.annotate({ description: "Rises with each decision: the `expected_version` of a withdrawal." }),
  created_at: Timestamp,
  updated_at: Timestamp,
}

export const ListedProject = Schema.Struct(project).annotate({ identifier: "ListedProject" })
export type ListedProject = typeof ListedProject.Type

/** A project to which a member of its institution may ask for Access: no more of it is shown to the member. */
export const RequestableProject = Schema.Struct({ project_id: ProjectId, name: Schema.String })
  .annotate({ identifier: "RequestableProject" })

export const RequestableProjects = Schema.Struct({ items: Schema.Array(RequestableProject) })
  .annotate({ identifier: "RequestableProjects" })
export type RequestableProjects = typeof RequestableProjects.Type

export const ListedProjects = Schema.Struct({ items: Schema.Array(ListedProject) })
  .annotate({ identifier: "ListedProjects" })
export type ListedProjects = typeof ListedProjects.Type

const decided = {
  author_person_id: PersonId,
  created_at: Timestamp,
  decided_at: orNull(Timestamp),
}

export const ProjectRegistration = Schema.Struct({
  request_id: RequestId,
  state: Schema.Literals(["submitted", "approved", "declined", "superseded"]),
  reason: Schema.String,
  ...filed,
  ...decided,
}).annotate({ identifier: "ProjectRegistration" })
export type ProjectRegistration = typeof ProjectRegistration.Type

export const ProjectLaunch = Schema.Struct({ ...LaunchProposal.fields, ...decided })
  .annotate({ identifier: "ProjectLaunch" })
export type ProjectLaunch = typeof ProjectLaunch.Type

export const ProjectLaunches = Schema.Struct({ items: Schema.Array(ProjectLaunch) })
  .annotate({ identifier: "ProjectLaunches" })
export type ProjectLaunches = typeof ProjectLaunches.Type

export const ListedOwners = Schema.Struct({ items: ProjectOwners.fields.owners }).annotate({
  identifier: "ListedOwners",
})
export type ListedOwners = typeof ListedOwners.Type

const unlessUser = "Null for a caller who only has Access to the project."

export const Project = Schema.Struct({
  ...project,
  registration: orNull(ProjectRegistration).annotate({
    description: `The request that registered the project; null for a project of the directory. ${unlessUser}`,
  }),
  owners: orNull(ProjectOwners.fields.owners).annotate({ description: unlessUser }),
  launches: orNull(Schema.Array(ProjectLaunch)).annotate({
    description: `The newest 20 launch proposals, newest first. ${unlessUser}`,
  }),
}).annotate({ identifier: "Project" })
export type Project = typeof Project.Type
