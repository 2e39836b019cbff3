/** Institutions, their members and their Access, as those who decide there read them (docs/api/identity.md). */
import { Schema } from "effect"
import { AccessId, AccessReviewId, InstitutionId, PersonId, ProjectId } from "../BrandedIds.ts"
import { Id, Timestamp } from "../Wire.ts"
import { AccessState, InstitutionStatus, MembershipRole, MembershipState } from "./IdentityDirectory.ts"
import { Enrollment } from "./RequestBodies.ts"

const orNull = Schema.NullOr

const held = {
  role: MembershipRole,
  effective: Schema.Boolean.annotate({
    description: "Whether the role counts now: accepted, active, begun and not over, in an active institution",
  }),
}

export const Institution = Schema.Struct({
  institution_id: InstitutionId,
  name: Schema.String,
  status: InstitutionStatus,
  verified_domains: Schema.Array(Schema.String),
  created_at: Timestamp,
  memberships: Schema.Array(Schema.Struct(held)).annotate({
    description: "The caller's own memberships that have not ended; none for an operator without one",
  }),
}).annotate({ identifier: "Institution" })
export type Institution = typeof Institution.Type

export const Institutions = Schema.Struct({ items: Schema.Array(Institution) }).annotate({ identifier: "Institutions" })
export type Institutions = typeof Institutions.Type

export const InstitutionMember = Schema.Struct({
  person_id: PersonId,
  display_name: orNull(Schema.String),
  memberships: Schema.Array(Schema.Struct({
    ...held,
    state: MembershipState,
    accepted_at: orNull(Timestamp),
    effective_from: orNull(Timestamp),
    expires_at: orNull(Timestamp),
  })).annotate({ description: "One a role, ended ones included" }),
}).annotate({ identifier: "InstitutionMember" })
export type InstitutionMember = typeof InstitutionMember.Type

export const InstitutionMembers = Schema.Struct({ items: Schema.Array(InstitutionMember) })
  .annotate({ identifier: "InstitutionMembers" })
export type InstitutionMembers = typeof InstitutionMembers.Type

export const ListedEnrollment = Schema.Struct({
  ...Enrollment.fields,
  author_person_id: PersonId,
  decided_at: orNull(Timestamp),
}).annotate({ identifier: "ListedEnrollment" })
export type ListedEnrollment = typeof ListedEnrollment.Type

export const InstitutionEnrollments = Schema.Struct({ items: Schema.Array(ListedEnrollment) })
  .annotate({ identifier: "InstitutionEnrollments" })
export type InstitutionEnrollments = typeof InstitutionEnrollments.Type

export const ListedAccess = Schema.Struct({
  access_id: AccessId,
  access_version: Schema.Int.annotate({
    description: "The current version, the `access_version` of a proposal; with `at` the version of that time",
  }),
  project_id: ProjectId,
  person_id: PersonId,
  display_name: orNull(Schema.String),
  role: Schema.String,
  state: AccessState,
  granted_at: Timestamp.annotate({
    description: "When the current version was made, also where it revokes the Access",
  }),
  ends_at: orNull(Timestamp).annotate({
    description: "When it is revoked by itself; with `at` as it was set then; null: it has no end, or is revoked",
  }),
  grant_event_id: Id.annotate({ description: "The event of the current version" }),
  review: orNull(Schema.Struct({ review_id: AccessReviewId, state: Schema.Literals(["proposed", "approved"]) }))
    .annotate({
      description: "The review of the current version that is proposed or approved and has not expired",
    }),
}).annotate({ identifier: "ListedAccess" })
export type ListedAccess = typeof ListedAccess.Type

export const InstitutionAccess = Schema.Struct({ items: Schema.Array(ListedAccess) })
  .annotate({ identifier: "InstitutionAccess" })
export type InstitutionAccess = typeof InstitutionAccess.Type

export const PersonName = Schema.Struct({
  person_id: PersonId.annotate({ description: "As it was asked for, also where the person was merged since" }),
  display_name: orNull(Schema.String),
}).annotate({ identifier: "PersonName" })
export type PersonName = typeof PersonName.Type

export const PersonNames = Schema.Struct({ items: Schema.Array(PersonName) }).annotate({ identifier: "PersonNames" })
export type PersonNames = typeof PersonNames.Type
