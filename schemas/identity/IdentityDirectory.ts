/**
 * The fields of the identity kinds of the directory (docs/api/identity.md). Ids are opaque: chosen by the system that
 * made them, in the alphabet of subject tokens.
 */
import { Schema } from "effect"
import { address, FeedTime, hostname, orNull, text } from "../bus/Fields.ts"
import { ForeignId } from "../Wire.ts"

export const PersonStatus = Schema.Literals(["active", "suspended", "disabled"])
export type PersonStatus = typeof PersonStatus.Type

export const InstitutionStatus = Schema.Literals(["active", "suspended"])
export type InstitutionStatus = typeof InstitutionStatus.Type

export const MembershipRole = Schema.Literals(["sponsor", "administrator", "member"]).annotate({
  identifier: "MembershipRole",
})
export type MembershipRole = typeof MembershipRole.Type

export const MembershipState = Schema.Literals(["invited", "active", "suspended", "ended"]).annotate({
  identifier: "MembershipState",
})
export type MembershipState = typeof MembershipState.Type

export const Environment = Schema.Literals(["staging", "production"]).annotate({ identifier: "Environment" })
export type Environment = typeof Environment.Type

export const ConnectorKind = Schema.Literals(["service_connector", "standard_oidc"])
export type ConnectorKind = typeof ConnectorKind.Type

export const ProjectState = Schema.Literals(["registered", "launch_proposed", "launched", "held", "withdrawn"])
  .annotate({
    identifier: "ProjectState",
  })
export type ProjectState = typeof ProjectState.Type

export const AccessState = Schema.Literals(["active", "revoked"])
export type AccessState = typeof AccessState.Type

/** OpenID Connect Core, 2: a subject has at most 255 ASCII characters. */
const subject = Schema.String.check(Schema.isPattern(/^[\x20-\x7e]{1,255}$/))
const issuer = Schema.String.check(Schema.isPattern(/^[\x21-\x7e]{1,1024}$/))

const upTo = <S extends Schema.Constraint>(max: number, item: S) =>
  Schema.optionalKey(Schema.Array(item).check(Schema.isMaxLength(max)))

export const PersonFields = Schema.Struct({
  issuer,
  subject,
  display_name: orNull(text(500)),
  email: orNull(address),
  email_verified: Schema.optionalKey(Schema.Boolean),
  operator: Schema.optionalKey(Schema.Boolean),
  /** Reads decisions, changes nothing, and holds no other role meanwhile. */
  auditor: Schema.optionalKey(Schema.Boolean),
  status: PersonStatus,
})

export const InstitutionFields = Schema.Struct({
  name: text(500),
  verified_domains: upTo(100, hostname),
  status: InstitutionStatus,
})

export const InstitutionMembershipFields = Schema.Struct({
  institution_id: ForeignId,
  person_id: ForeignId,
  role: MembershipRole,
  state: MembershipState,
  accepted_at: orNull(FeedTime),
  effective_from: orNull(FeedTime),
  expires_at: orNull(FeedTime),
})

export const ProjectFields = Schema.Struct({
  institution_id: ForeignId,
  name: text(500),
  website: text(2048),
  environment: Environment,
  connector_kind: Schema.optionalKey(ConnectorKind),
  connector_product: orNull(text(500)),
  preview_digest: orNull(text(500)),
  redirect_uris: upTo(16, text(2048)),
  state: ProjectState,
})

/** The connector version that a project's product runs. */
export const ProjectLinkFields = Schema.Struct({ project_id: ForeignId, installed_version: text(200) })

export const ProjectOwnerFields = Schema.Struct({
  project_id: ForeignId,
  person_id: ForeignId,
  active: Schema.optionalKey(Schema.Boolean),
})

export const AccessFields = Schema.Struct({
  institution_id: ForeignId,
  project_id: ForeignId,
  person_id: ForeignId,
  role: text(200),
  state: AccessState,
})
