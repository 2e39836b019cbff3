/** Authenticators, and the actions that change them and sessions (docs/api/identity.md). */
import { Schema } from "effect"
import { AuthenticatorId, IntentId } from "../BrandedIds.ts"
import { complains, notOneOf } from "../Validation/Fault.ts"
import { maxCodePoints, Text } from "../Validation/Scalars.ts"
import { Timestamp } from "../Wire.ts"

export const AuthenticatorKind = Schema.Literals(["passkey", "security_key", "totp", "recovery_codes", "password"])
export type AuthenticatorKind = typeof AuthenticatorKind.Type

/** CAEP's names of the kinds, so that events need no mapping; `recovery-codes` is ours. */
export const CredentialType = Schema.Literals(["fido2-platform", "fido2-roaming", "app", "password", "recovery-codes"])
export type CredentialType = typeof CredentialType.Type

/** The public view of an authenticator, without its secrets. */
export const AuthenticatorView = Schema.Struct({
  authenticator_id: AuthenticatorId,
  kind: AuthenticatorKind,
  credential_type: CredentialType,
  label: Schema.String,
  created_at: Timestamp,
  last_used_at: Schema.NullOr(Timestamp),
  aaguid: Schema.NullOr(Schema.String),
  transports: Schema.Array(Schema.String),
  backup_eligible: Schema.NullOr(Schema.Boolean),
  backup_state: Schema.NullOr(Schema.Boolean),
  codes_remaining: Schema.NullOr(Schema.Int),
  removable: Schema.Boolean,
  not_removable_reason: Schema.NullOr(Schema.Literals(["last_authenticator", "policy"])),
}).annotate({ identifier: "Authenticator" })
export type AuthenticatorView = typeof AuthenticatorView.Type

export const AuthenticatorList = Schema.Struct({ items: Schema.Array(AuthenticatorView), total: Schema.Int })
  .annotate({ identifier: "AuthenticatorList" })

export const ActionKind = Schema.Literals([
  "passkey.register",
  "passkey.remove",
  "totp.enroll",
  "totp.remove",
  "recovery_codes.generate",
  "authenticator.rename",
  "session.revoke",
  "sessions.revoke_others",
]).annotate({ identifier: "CredentialActionKind" })
export type ActionKind = typeof ActionKind.Type

export const ProofType = Schema.Literals(["webauthn.create", "totp", "confirm"])
export type ProofType = typeof ProofType.Type

/** The target of each action, and the proof that completes it. */
export const actionTable = {
  "passkey.register": { target: "none", proof: "webauthn.create" },
  "passkey.remove": { target: "authenticator", proof: "confirm" },
  "totp.enroll": { target: "none", proof: "totp" },
  "totp.remove": { target: "authenticator", proof: "confirm" },
  "recovery_codes.generate": { target: "none", proof: "confirm" },
  "authenticator.rename": { target: "authenticator", proof: "confirm" },
  "session.revoke": { target: "session", proof: "confirm" },
  "sessions.revoke_others": { target: "none", proof: "confirm" },
} as const satisfies Record<
  ActionKind,
  { readonly target: "none" | "authenticator" | "session"; readonly proof: ProofType }
>

export const Capabilities = Schema.Struct({
  actions: Schema.Array(Schema.Struct({
    kind: ActionKind,
    available: Schema.Boolean,
    unavailable_reason: Schema.NullOr(Schema.String),
    acr_values: Schema.Array(Schema.String),
    max_age_seconds: Schema.Int,
    /** Whether the present sign-in suffices. */
    satisfied: Schema.Boolean,
    target: Schema.Literals(["none", "authenticator", "session"]),
    proof_type: ProofType,
  })),
  intent_ttl_seconds: Schema.Int,
  /**
   * Whether the issuer of this sign-in may come to state a second factor. Where it never does, the person who enrolls one
   * here is then asked for a sign-in that it does not give.
   */
  second_factor: Schema.Boolean,
}).annotate({ identifier: "CredentialCapabilities" })

// "or null" means that a field may be null or absent.
const orNull = <S extends Schema.Top>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

export const StartAction = Schema.Struct({
  kind: ActionKind,
  target_id: orNull(Schema.String),
  label: orNull(Text(1, 64)),
}).annotate({ identifier: "StartAction" })
export type StartAction = typeof StartAction.Type

export const Challenge = Schema.Union([
  Schema.Struct({
    type: Schema.Literal("webauthn.create"),
    /** PublicKeyCredentialCreationOptionsJSON (WebAuthn Level 3, 5.1.8). */
    public_key: Schema.Record(Schema.String, Schema.Unknown),
  }),
  Schema.Struct({
    type: Schema.Literal("totp"),
    /** Null in a replay: the secret is shown once. */
    otpauth_uri: Schema.NullOr(Schema.String),
    /** Base32. */
    secret: Schema.NullOr(Schema.String),
  }),
  Schema.Struct({ type: Schema.Literal("confirm"), summary: Schema.String }),
])
export type Challenge = typeof Challenge.Type

export const StartedAction = Schema.Struct({
  intent_id: IntentId,
  kind: ActionKind,
  state: Schema.Literal("pending"),
  expires_at: Timestamp,
  challenge: Challenge,
}).annotate({ identifier: "StartedAction" })
export type StartedAction = typeof StartedAction.Type

// Open, since browsers add members as the standard grows; the members that count are verified.
const open = <Fields extends Schema.Struct.Fields>(fields: Fields) =>
  Schema.StructWithRest(Schema.Struct(fields), [Schema.Record(Schema.String, Schema.Unknown)])
    .check(Schema.isMaxProperties(100))

const Base64Url = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9_-]+$/u), Schema.isMaxLength(100_000))

/** RegistrationResponseJSON (WebAuthn Level 3, 5.1.8), as `PublicKeyCredential.toJSON()` returns it. */
export const RegistrationResponse = open({
  id: Base64Url,
  rawId: Base64Url,
  type: Schema.Literal("public-key"),
  response: open({
    clientDataJSON: Base64Url,
    attestationObject: Base64Url,
    transports: Schema.optionalKey(
      Schema.Array(Schema.String.check(maxCodePoints(32))).check(
        Schema.isMaxLength(16),
      ),
    ),
  }),
  authenticatorAttachment: orNull(Schema.String),
  clientExtensionResults: Schema.optionalKey(
    Schema.Record(Schema.String, Schema.Unknown).check(Schema.isMaxProperties(100)),
  ),
})
export type RegistrationResponse = typeof RegistrationResponse.Type

/** Not a literal, since the proofs must differ in the literal `type` alone. */
const Acknowledged = Schema.Boolean.check(
  Schema.makeFilter<boolean>((said) => said, {
    toJsonSchema: () => [{ enum: [true] }, true],
    ...complains(notOneOf([true])),
  }),
)

export const Proof = Schema.Union([
  Schema.Struct({ type: Schema.Literal("webauthn.create"), credential: RegistrationResponse }),
  Schema.Struct({ type: Schema.Literal("totp"), code: Schema.String.check(Schema.isPattern(/^[0-9]{6}$/u)) }),
  Schema.Struct({ type: Schema.Literal("confirm"), acknowledged: Acknowledged }),
])
export type Proof = typeof Proof.Type

export const FinishAction = Schema.Struct({ proof: Proof }).annotate({ identifier: "FinishAction" })

export const FinishedAction = Schema.Struct({
  intent_id: IntentId,
  kind: ActionKind,
  state: Schema.Literal("completed"),
  completed_at: Timestamp,
  /** The authenticator that was made or changed. */
  authenticator: Schema.NullOr(AuthenticatorView),
  /** Shown once: null in a replay. */
  recovery_codes: Schema.NullOr(Schema.Array(Schema.String)),
  sessions_revoked: Schema.Int,
  /** The lifecycle events of this action. */
  event_ids: Schema.Array(Schema.String),
}).annotate({ identifier: "FinishedAction" })
export type FinishedAction = typeof FinishedAction.Type

/** How long an action may be completed after its start, in seconds. */
export const intentTtlSeconds = 600
