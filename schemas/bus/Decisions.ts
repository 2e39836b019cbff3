/**
 * Decisions of this program, for the mail platform (`directory.v1.<kind>.<id>`, stream DIRECTORY): ids, states and
 * times.
 */
import { Schema } from "effect"
import { ApiKeyId, SmtpCredentialUuid, WorkspaceUuid } from "../BrandedIds.ts"
import { MembershipRole, MembershipState } from "../identity/IdentityDirectory.ts"
import { Timestamp, Uuid } from "../Wire.ts"
import { Subject } from "./Subject.ts"

export const KeyRevoked = Schema.Struct({
  kind: Schema.Literal("api_key"),
  id: ApiKeyId,
  account_id: Uuid,
  revoked_at: Timestamp,
})

/** Every new state of a membership, since one that ended may be restored: the last decision counts. */
export const MembershipDecided = Schema.Struct({
  kind: Schema.Literal("institution_membership"),
  id: Schema.String,
  institution_id: Schema.String,
  person_id: Schema.String,
  role: MembershipRole,
  state: MembershipState,
  decided_at: Timestamp,
})
export type MembershipDecided = typeof MembershipDecided.Type

export const AuthenticatorRemoved = Schema.Struct({
  kind: Schema.Literal("authenticator"),
  id: Uuid,
  person_id: Schema.String,
  removed_at: Timestamp,
})

/** An SMTP credential that belongs to no owner of its domain any more. */
export const SmtpCredentialRevoked = Schema.Struct({
  kind: Schema.Literal("smtp_credential"),
  id: SmtpCredentialUuid,
  domain_id: Uuid,
  account_id: Uuid,
  revoked_at: Timestamp,
})
export type SmtpCredentialRevoked = typeof SmtpCredentialRevoked.Type

/** A domain that changed hands, with its new owner. The transfer itself stands on TRANSFERS. */
export const DomainMoved = Schema.Struct({
  kind: Schema.Literal("domain"),
  id: Uuid,
  name: Schema.String,
  account_id: Uuid,
  workspace_id: WorkspaceUuid,
  dkim_selector: Schema.String,
  /** With a new key only. The private key leaves on no stream. */
  dkim_algorithm: Schema.optionalKey(Schema.String),
  dkim_public_key: Schema.optionalKey(Schema.String),
  transfer_id: Uuid,
  revision: Schema.Int,
})
export type DomainMoved = typeof DomainMoved.Type

/** Decisions that a database restored from a backup learns of again; the others stand on streams of their own. */
export const Decision = Schema.Union([KeyRevoked, MembershipDecided, AuthenticatorRemoved])
export type Decision = typeof Decision.Type

/** The decision's message for the outbox. */
export const decisionMessage = (decision: Decision) => ({
  stream: "DIRECTORY" as const,
  subject: `directory.v1.${decision.kind}.${Subject.token(decision.id)}`,
  payload: JSON.stringify(decision),
})
