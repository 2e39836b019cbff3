/**
 * Requests of people (docs/requests.md): bodies, by the specification's tables, and answers. Every body that satisfies
 * the tables is accepted.
 */
import { Schema } from "effect"
import {
  AccessId,
  InstitutionId,
  LinkProofId,
  PersonId,
  PolicyReviewId,
  ProjectId,
  ProviderJobId,
  RequestId,
} from "../BrandedIds.ts"
import { minCodePoints, Text } from "../Validation/Scalars.ts"
import { Id, Timestamp } from "../Wire.ts"
import { DomainName } from "./Addresses.ts"
import { MembershipRole, MembershipState } from "./IdentityDirectory.ts"
import { DecisionReason } from "./DecisionReason.ts"

const orNull = Schema.NullOr
/** "Or null" in a body: the field may be null or absent. */
const orAbsent = <S extends Schema.Constraint>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

export const Contact = Schema.Struct({
  name: Text(1, 200),
  email: Text(3, 254),
  role: orAbsent(Schema.Literals(["owner", "technical", "security", "billing"])),
  phone: orAbsent(Schema.String),
}).annotate({ identifier: "Contact" })

const oneToTen = [Schema.isMinLength(1), Schema.isMaxLength(10)] as const

/** An organization request. */
export const RequestFields = Schema.Struct({
  name: Text(2, 200),
  organization_type: Text(2, 100),
  website: Text(8, 2048),
  domains: Schema.Array(DomainName).check(...oneToTen),
  purpose: Text(12, 4000),
  contacts: Schema.Array(Contact).check(...oneToTen),
  reason: DecisionReason,
}).annotate({ identifier: "RequestFields" })
export type RequestFields = typeof RequestFields.Type

/** An access request. */
export const RequestCreate = Schema.Struct({
  reason: DecisionReason,
  institution_id: InstitutionId,
  project_id: ProjectId,
}).annotate({ identifier: "RequestCreate" })
export type RequestCreate = typeof RequestCreate.Type

export const PersonCreate = Schema.Struct({
  reason: DecisionReason,
  // No token can name an identity without an issuer.
  issuer: Schema.String.check(minCodePoints(1)),
  subject: Schema.String.check(minCodePoints(1)),
}).annotate({ identifier: "PersonCreate" })
export type PersonCreate = typeof PersonCreate.Type

export const EnrollmentCreate = Schema.Struct({ reason: DecisionReason, recipient: Text(3, 254) })
  .annotate({ identifier: "EnrollmentCreate" })
export type EnrollmentCreate = typeof EnrollmentCreate.Type

export const MembershipChange = Schema.Struct({
  reason: DecisionReason,
  person_id: PersonId,
  role: MembershipRole,
  state: MembershipState,
}).annotate({ identifier: "MembershipChange" })
export type MembershipChange = typeof MembershipChange.Type

export const AuthenticatorResetCreate = Schema.Struct({ reason: DecisionReason, person_id: PersonId })
  .annotate({ identifier: "AuthenticatorResetCreate" })
export type AuthenticatorResetCreate = typeof AuthenticatorResetCreate.Type

export const LinkCreate = Schema.Struct({ reason: DecisionReason, proof_id: LinkProofId })
  .annotate({ identifier: "LinkCreate" })
export type LinkCreate = typeof LinkCreate.Type

/** An access token of the other identity. */
export const LinkProofCreate = Schema.Struct({ token: Schema.String }).annotate({ identifier: "LinkProofCreate" })

export const Objection = Schema.Struct({ reason: orAbsent(DecisionReason) }).annotate({ identifier: "Objection" })

/** The review that the request waits for. */
export const OpenedReview = Schema.Struct({ review_id: PolicyReviewId, required_roles: Schema.Array(Schema.String) })
  .annotate({ identifier: "OpenedPolicyReview" })
export type OpenedReview = typeof OpenedReview.Type

/** The last fields of every request's answer; `version` rises with each decision. */
export const filed = {
  version: Schema.Int,
  created_at: Timestamp,
  /** The lifecycle event of the request, if any. */
  event_id: orNull(Id),
  /** The provider's job of the request, if any. */
  job_id: orNull(ProviderJobId),
  policy_review: orNull(OpenedReview),
}

export const OrganizationRequest = Schema.Struct({
  request_id: RequestId,
  name: Schema.String,
  organization_type: Schema.String,
  website: Schema.String,
  domains: Schema.Array(Schema.String),
  purpose: Schema.String,
  contacts: Schema.Array(Contact),
  reason: Schema.String,
  /** The institution that the approval created. */
  institution_id: orNull(InstitutionId),
  state: Schema.Literals(["submitted", "approved", "declined"]),
  ...filed,
}).annotate({ identifier: "OrganizationRequest" })
export type OrganizationRequest = typeof OrganizationRequest.Type

export const AccessRequest = Schema.Struct({
  request_id: RequestId,
  institution_id: InstitutionId,
  project_id: ProjectId,
  reason: Schema.String,
  /** The Access that the approval created. */
  access_id: orNull(AccessId),
  ends_at: orNull(Timestamp).annotate({ description: "When the Access ends, as it was asked for" }),
  expires_at: Timestamp,
  state: Schema.Literals(["submitted", "approved", "declined", "expired"]),
  ...filed,
}).annotate({ identifier: "AccessRequest" })
export type AccessRequest = typeof AccessRequest.Type

export const CreatedPerson = Schema.Struct({
  person_id: PersonId,
  issuer: Schema.String,
  subject: Schema.String,
  reason: Schema.String,
  state: Schema.Literals(["active", "suspended", "disabled"]),
  ...filed,
}).annotate({ identifier: "CreatedPerson" })
export type CreatedPerson = typeof CreatedPerson.Type

/** The outcome of the invitation's mail: poll it, and never send the request again blindly. */
export const MailDelivery = Schema.Struct({
  state: Schema.Literals(["none", "queued", "delivered", "failed", "ambiguous"]),
  message_id: orNull(Schema.String),
}).annotate({ identifier: "MailDelivery" })
export type MailDelivery = typeof MailDelivery.Type

export const Enrollment = Schema.Struct({
  enrollment_id: RequestId,
  institution_id: InstitutionId,
  /** Masked, but recognisable. */
  recipient: Schema.String,
  reason: Schema.String,
  delivery: MailDelivery,
  expires_at: Timestamp,
  state: Schema.Literals(["held", "invited", "accepted", "expired", "revoked"]),
  ...filed,
}).annotate({ identifier: "Enrollment" })
export type Enrollment = typeof Enrollment.Type

export const AcceptedEnrollment = Schema.Struct({
  enrollment_id: RequestId,
  institution_id: InstitutionId,
  /** `invited`: an administrator has to agree first, since the invitation went to another address. */
  state: Schema.Literals(["invited", "accepted"]),
  membership: orNull(Schema.Struct({ role: MembershipRole, state: MembershipState })),
  version: Schema.Int,
  policy_review: orNull(OpenedReview),
}).annotate({ identifier: "AcceptedEnrollment" })
export type AcceptedEnrollment = typeof AcceptedEnrollment.Type

const AskedMembership = Schema.Struct({ person_id: PersonId, role: MembershipRole, state: MembershipState })

export const MembershipRequest = Schema.Struct({
  request_id: RequestId,
  institution_id: InstitutionId,
  /** The requested membership. */
  membership: AskedMembership,
  reason: Schema.String,
  expires_at: Timestamp,
  state: Schema.Literals(["submitted", "approved", "declined", "expired"]),
  ...filed,
}).annotate({ identifier: "MembershipRequest" })
export type MembershipRequest = typeof MembershipRequest.Type

export const AuthenticatorResetRequest = Schema.Struct({
  request_id: RequestId,
  institution_id: InstitutionId,
  /** Whose authenticators are removed. */
  person_id: PersonId,
  reason: Schema.String,
  expires_at: Timestamp,
  state: Schema.Literals(["submitted", "approved", "declined", "expired"]),
  ...filed,
}).annotate({ identifier: "AuthenticatorResetRequest" })
export type AuthenticatorResetRequest = typeof AuthenticatorResetRequest.Type

/** A proposal that an Access is revoked. */
export const AccessRevocationRequest = Schema.Struct({
  request_id: RequestId,
  institution_id: InstitutionId,
  project_id: ProjectId,
  access_id: AccessId,
  access_version: Schema.Int,
  /** Whose Access it is. */
  person_id: PersonId,
  reason: Schema.String,
  expires_at: Timestamp,
  state: Schema.Literals(["submitted", "approved", "declined", "expired"]),
  ...filed,
}).annotate({ identifier: "AccessRevocationRequest" })
export type AccessRevocationRequest = typeof AccessRevocationRequest.Type

export const LinkProof = Schema.Struct({ proof_id: LinkProofId, expires_at: Timestamp })
  .annotate({ identifier: "LinkProof" })
export type LinkProof = typeof LinkProof.Type

export const LinkRequest = Schema.Struct({
  link_request_id: RequestId,
  /** Null for one of an earlier release. */
  proof_id: orNull(LinkProofId),
  issuer: Schema.String,
  subject: Schema.String,
  reason: Schema.String,
  expires_at: Timestamp,
  /** When the identities become one, once an operator has approved the link and no one has objected. */
  effective_at: orNull(Timestamp),
  state: Schema.Literals(["pending_review", "linked", "declined", "expired"]),
  ...filed,
}).annotate({ identifier: "LinkRequest" })
export type LinkRequest = typeof LinkRequest.Type

/** One of the caller's own requests, of any kind, or a link of the caller's identity that another person requests. */
export const OwnRequest = Schema.Struct({
  id: RequestId,
  kind: Schema.Literals([
    "organization",
    "website",
    "access",
    "enrollment",
    "launch",
    "link",
    "membership",
    "authenticator_reset",
    "access_revocation",
  ]),
  /** Where this is another person than the caller: a link that the caller may object to. */
  author_person_id: PersonId,
  /** The states of all kinds. */
  state: Schema.Literals([
    "submitted",
    "approved",
    "declined",
    "superseded",
    "expired",
    "held",
    "invited",
    "accepted",
    "revoked",
    "proposed",
    "launched",
    "pending_review",
    "linked",
  ]),
  institution_id: orNull(InstitutionId),
  project_id: orNull(ProjectId),
  name: orNull(Schema.String).annotate({
    description: "Of an organization or a website: its name, as it was asked for.",
  }),
  recipient: orNull(Schema.String).annotate({
    description: "Of an enrollment: the invited address, masked, but recognisable.",
  }),
  ends_at: orNull(Timestamp).annotate({ description: "Of Access: when it ends, as it was asked for." }),
  membership: orNull(AskedMembership).annotate({ description: "Of a membership: whose, and what is asked for." }),
  reason: Schema.String,
  expires_at: orNull(Timestamp),
  decided_at: orNull(Timestamp),
  withdrawn: Schema.Boolean.annotate({
    description:
      "Whether its author withdrew it; its state is then `declined`, `superseded` or `revoked`, by its kind.",
  }),
  effective_at: orNull(Timestamp).annotate({
    description: "Of an approved link: when the two identities become one, unless the other side objects.",
  }),
  held_reason: orNull(Schema.String).annotate({
    description: "Of an approved launch that is held: the condition that it waits for.",
    examples: ["client_not_provisioned"],
  }),
  client_id: orNull(Schema.String).annotate({
    description: "Of a website: its client at the identity provider, once the provider's job has made it.",
  }),
  /** The id of what the request created: an institution, an Access, a membership, a project. */
  result_id: orNull(Schema.String),
  /** Of an enrollment: the outcome of its mail. */
  delivery: orNull(MailDelivery),
  ...filed,
}).annotate({ identifier: "OwnRequest" })
export type OwnRequest = typeof OwnRequest.Type

export const OwnRequests = Schema.Struct({ items: Schema.Array(OwnRequest) }).annotate({ identifier: "OwnRequests" })
export type OwnRequests = typeof OwnRequests.Type
