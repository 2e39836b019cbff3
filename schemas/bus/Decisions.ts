/**
 * Decisions of this program that revoke something and appear on no other stream, for the mail platform
 * (`directory.v1.<kind>.<id>`, stream DIRECTORY): ids, states and times. A database that was restored from a backup
 * learns of them again from there.
 */
import { Schema } from "effect"
import { MembershipRole, MembershipState } from "../identity/IdentityDirectory.ts"
import { Timestamp, Uuid } from "../Wire.ts"
import { Subject } from "./Subject.ts"

export const KeyRevoked = Schema.Struct({
  kind: Schema.Literal("api_key"),
  id: Uuid,
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

export const Decision = Schema.Union([KeyRevoked, MembershipDecided, AuthenticatorRemoved])
export type Decision = typeof Decision.Type

/** The decision's message for the outbox. */
export const decisionMessage = (decision: Decision) => ({
  stream: "DIRECTORY" as const,
  subject: `directory.v1.${decision.kind}.${Subject.token(decision.id)}`,
  payload: JSON.stringify(decision),
})
