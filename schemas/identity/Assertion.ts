/** Assertions: what people have enrolled, checked for the issuer that signs them in (docs/api/identity.md). */
import { Schema } from "effect"
import { AssertionId, AuthenticatorId } from "../BrandedIds.ts"
import { maxCodePoints, Text } from "../Validation/Scalars.ts"
import { Timestamp } from "../Wire.ts"
import { AuthenticatorKind } from "./CredentialAction.ts"

const orNull = <S extends Schema.Top>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

/** Whether an authenticator has to verify its user, by a finger or a PIN, or may do with a touch. */
export const UserVerification = Schema.Literals(["required", "preferred"])
export type UserVerification = typeof UserVerification.Type

export const StartAssertion = Schema.Struct({
  /** The `sub` of the person at the calling issuer. */
  subject: Text(1, 255),
  /** The origin of the page that asks the browser; by default one of the relying party's own. */
  origin: orNull(Text(1, 300)),
  user_verification: orNull(UserVerification),
}).annotate({ identifier: "StartAssertion" })
export type StartAssertion = typeof StartAssertion.Type

export const StartedAssertion = Schema.Struct({
  assertion_id: AssertionId,
  /** The kinds of proof that the person can give; empty where the person has none, or is not known. */
  kinds: Schema.Array(AuthenticatorKind),
  expires_at: Timestamp,
  /** PublicKeyCredentialRequestOptionsJSON (WebAuthn Level 3, 5.1.8); null without a passkey or security key. */
  public_key: Schema.NullOr(Schema.Record(Schema.String, Schema.Unknown)),
}).annotate({ identifier: "StartedAssertion" })
export type StartedAssertion = typeof StartedAssertion.Type

// Open, since browsers add members as the standard grows; the members that count are verified.
const open = <Fields extends Schema.Struct.Fields>(fields: Fields) =>
  Schema.StructWithRest(Schema.Struct(fields), [Schema.Record(Schema.String, Schema.Unknown)])
    .check(Schema.isMaxProperties(100))

const Base64Url = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9_-]+$/u), Schema.isMaxLength(20_000))

/** AuthenticationResponseJSON (WebAuthn Level 3, 5.1.8), as `PublicKeyCredential.toJSON()` returns it. */
export const AuthenticationResponse = open({
  id: Base64Url,
  rawId: Base64Url,
  type: Schema.Literal("public-key"),
  response: open({
    clientDataJSON: Base64Url,
    authenticatorData: Base64Url,
    signature: Base64Url,
    userHandle: orNull(Base64Url),
  }),
})
export type AuthenticationResponse = typeof AuthenticationResponse.Type

export const AssertionProof = Schema.Union([
  Schema.Struct({ type: Schema.Literal("webauthn.get"), credential: AuthenticationResponse }),
  Schema.Struct({ type: Schema.Literal("totp"), code: Schema.String.check(Schema.isPattern(/^[0-9]{6}$/u)) }),
  /** As it was shown, in any case and with any separators. */
  Schema.Struct({ type: Schema.Literal("recovery_code"), code: Schema.String.check(maxCodePoints(100)) }),
])
export type AssertionProof = typeof AssertionProof.Type

export const CheckAssertion = Schema.Struct({ proof: AssertionProof }).annotate({ identifier: "CheckAssertion" })

/** A refusal has the members of a success: it tells that this proof does not hold, and not why. */
export const CheckedAssertion = Schema.Struct({
  assertion_id: AssertionId,
  verified: Schema.Boolean,
  /** Whether the assertion takes no further check. */
  ended: Schema.Boolean,
  authenticator_id: Schema.NullOr(AuthenticatorId),
  kind: Schema.NullOr(AuthenticatorKind),
  /** Whether the authenticator has verified its user; null but for a passkey or security key. */
  user_verified: Schema.NullOr(Schema.Boolean),
  /** Null but for a recovery code. */
  codes_remaining: Schema.NullOr(Schema.Int),
}).annotate({ identifier: "CheckedAssertion" })
export type CheckedAssertion = typeof CheckedAssertion.Type

/** How long an assertion may be checked after its start, in seconds. */
export const assertionTtlSeconds = 300
