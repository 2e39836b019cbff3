/**
 * A line of the directory as it crosses the bus (`intake.v1.directory.<kind>` and
 * `intake.v1.identity-directory.<kind>`) or stands in an NDJSON file: `{kind, id, version, …fields}`, or `{kind, id, version, removed: true}`.
 */
import { Schema } from "effect"
import { Subject } from "./Subject.ts"

/** What the mail platform may tell. */
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

/** The subjects that the mail directory arrives on, and the one of a kind. */
export const directorySubjects = "intake.v1.directory.*"
export const directorySubject = (kind: string): string => `intake.v1.directory.${Subject.token(kind)}`

/** What identity management around us may tell (docs/api/identity.md). */
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

/** The subjects that the identity directory arrives on, and the one of a kind. */
export const identityDirectorySubjects = "intake.v1.identity-directory.*"
export const identityDirectorySubject = (kind: string): string => `intake.v1.identity-directory.${Subject.token(kind)}`

/** What every line has, whatever its kind. */
export const DirectoryEnvelope = Schema.Struct({
  kind: Schema.String.check(Schema.isPattern(/^[a-z][a-z_]{0,63}$/)),
  id: Schema.String,
  version: Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)),
  removed: Schema.optionalKey(Schema.NullOr(Schema.Boolean)),
})
export type DirectoryEnvelope = typeof DirectoryEnvelope.Type
