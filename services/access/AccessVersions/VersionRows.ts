/** The rows of an Access and of its versions. */
import type { AccessId, InstitutionId, PersonId, ProjectId } from "../../../schemas/BrandedIds.ts"
import { digestOf } from "../../platform/security/CanonicalJson.ts"

type State = "active" | "revoked"

/** A person's right to use a project in a role. */
export interface Grant {
  readonly institutionId: InstitutionId
  readonly projectId: ProjectId
  readonly personId: PersonId
  readonly role: string
  readonly state: State
}

/** The maker and approvers of a change, as ids of people; changes of the feed have none. */
export interface Makers {
  readonly madeBy: PersonId | null
  readonly approvedBy: ReadonlyArray<PersonId>
  /** The program revokes the Access at its end; no person decides at that moment. */
  readonly ended?: boolean
}

export interface AccessDecision extends Grant, Makers {
  readonly accessId: AccessId
  /** Of a new Access: when it ends; by default it has no end. */
  readonly endsAt?: Date | null
}

export interface AccessVersion {
  readonly accessVersion: number
  /** The grant Event. */
  readonly eventId: string
  readonly digest: string
}

/** The newest version of an Access. */
export interface Last extends Grant, AccessVersion {}

/** An active person who was not merged into another, as projects know them. */
export interface Holder {
  readonly id: PersonId
  readonly issuer: string
  readonly subject: string
}

export const same = (a: Grant, b: Grant) =>
  a.institutionId === b.institutionId && a.projectId === b.projectId && a.personId === b.personId &&
  a.role === b.role && a.state === b.state

export const moved = (a: Grant, b: Grant) => a.projectId !== b.projectId || a.personId !== b.personId

export const versionColumns = {
  access_id: "text",
  access_version: "integer",
  institution_id: "text",
  project_id: "text",
  person_id: "text",
  role: "text",
  state: "text",
  digest: "text",
  event_id: "uuid",
  created_at: "timestamptz",
  made_by: "text",
  approved_by: "text[]",
} as const

/** A version as its row will be. */
export const versionOf = (
  accessId: AccessId,
  accessVersion: number,
  { institutionId, personId, projectId, role, state }: Grant,
  { approvedBy, madeBy }: Makers,
  eventId: string,
  millis: number,
) => {
  const row = {
    access_id: accessId,
    access_version: accessVersion,
    institution_id: institutionId,
    project_id: projectId,
    person_id: personId,
    role,
    state,
    event_id: eventId,
    created_at: new Date(millis).toISOString(),
    made_by: madeBy,
    approved_by: approvedBy,
  }
  return { ...row, digest: digestOf(row) }
}
