/**
 * A line of the directory, on the bus (`intake.v1.directory.<kind>` and `intake.v1.identity-directory.<kind>`) or in an
 * NDJSON file: `{kind, id, version, …fields}`, or `{kind, id, version, removed: true}`.
 */
import { Schema } from "effect"
import { Subject } from "./Subject.ts"

/** The kinds of the mail platform. */
export const mailKindNames = [
  "account",
  "workspace",
  "workspace_membership",
  "domain",
  "broadcast",
  "scheduled_email",
  "smtp_credential",
] as const
export type MailKindName = (typeof mailKindNames)[number]

/** The subjects of the mail directory, and the subject of one kind. */
export const directorySubjects = "intake.v1.directory.*"
export const directorySubject = (kind: string): string => `intake.v1.directory.${Subject.token(kind)}`

/** The kinds of identity management (docs/api/identity.md). */
export const identityKindNames = [
  "person",
  "institution",
  "institution_membership",
  "project",
  "project_link",
  "project_owner",
  "access",
] as const
export type IdentityKindName = (typeof identityKindNames)[number]

/** The subjects of the identity directory, and the subject of one kind. */
export const identityDirectorySubjects = "intake.v1.identity-directory.*"
export const identityDirectorySubject = (kind: string): string => `intake.v1.identity-directory.${Subject.token(kind)}`

/** The fields that every line has. */
export const DirectoryEnvelope = Schema.Struct({
  kind: Schema.String.check(Schema.isPattern(/^[a-z][a-z_]{0,63}$/)),
  id: Schema.String,
  version: Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)),
  removed: Schema.optionalKey(Schema.NullOr(Schema.Boolean)),
})
export type DirectoryEnvelope = typeof DirectoryEnvelope.Type
