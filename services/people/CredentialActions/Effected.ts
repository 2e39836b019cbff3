/** The result of a credential action, and the fault of an invalid proof. */
import { type Redacted, Schema } from "effect"
import { type AuthenticatorId, IntentId } from "../../../schemas/BrandedIds.ts"
import { type Authenticator, type Authenticators, credentialTypeOf } from "../Authenticators.ts"
import type { Happening } from "../SecurityEventFanout.ts"
import type { Sessions } from "../Sessions.ts"
import type { Intent } from "./Intents.ts"

/** The proof is not valid; its `member` is at fault. */
export class ProofRejected extends Schema.TaggedError<ProofRejected>()("ProofRejected", {
  intentId: IntentId,
  member: Schema.String,
}) {}

export interface Effected {
  /** The target of the action, as a typed id for the audit; null where the action has none. */
  readonly about: string | null
  /** The authenticator that was made or changed. */
  readonly authenticatorId: AuthenticatorId | null
  readonly recoveryCodes: ReadonlyArray<string> | null
  readonly sessionsRevoked: number
  readonly happenings: ReadonlyArray<Happening>
}

export interface Means {
  readonly authenticators: Authenticators["Service"]
  readonly sessions: Sessions["Service"]
  readonly secretOf: (intent: Intent) => Redacted.Redacted
}

/** An action that did nothing yet. */
export const nothing: Effected = {
  about: null,
  authenticatorId: null,
  recoveryCodes: null,
  sessionsRevoked: 0,
  happenings: [],
}

/** The event of a changed authenticator. */
export const changed = (
  one: Pick<Authenticator, "kind" | "platform" | "aaguid">,
  changeType: "create" | "update" | "delete",
): Happening => ({
  kind: "credential-change",
  credentialType: credentialTypeOf(one),
  changeType,
  aaguid: one.aaguid,
})
