/**
 * What was decided here and takes something away that no other stream tells of, as the platform around us hears it
 * (`directory.v1.<kind>.<id>`, stream DIRECTORY): ids, states and times. A database that was put back from before learns
 * of it again from there.
 */
import { Schema } from "effect"
import { MembershipRole, MembershipState } from "../identity/Directory.ts"
import { Timestamp, Uuid } from "../Wire.ts"
import { Subject } from "./Subject.ts"

export const KeyRevoked = Schema.Struct({
  kind: Schema.Literal("api_key"),
  id: Uuid,
  account_id: Uuid,
  revoked_at: Timestamp,
})

/** Whatever state it was given: of one that was given back after it ended the last word counts. */
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

/** Its message, as the outbox takes it. */
export const decisionMessage = (decision: Decision) => ({
  stream: "DIRECTORY" as const,
  subject: `directory.v1.${decision.kind}.${Subject.token(decision.id)}`,
  payload: JSON.stringify(decision),
})
