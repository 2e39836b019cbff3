/** The challenge of a new intent, and the members that a start needs for it. */
import type { PgClient } from "@effect/sql-pg"
import { Effect, Redacted } from "effect"
import type { PersonId } from "../../../schemas/BrandedIds.ts"
import { actionTable, type Challenge, type StartAction } from "../../../schemas/identity/CredentialAction.ts"
import { HTTPValidationError } from "../../../schemas/Validation.ts"
import type { Authenticator } from "../Authenticators.ts"
import { newSecret, uriOf } from "../Authenticators/Totp.ts"
import { creationOptions, type RelyingParty } from "../Authenticators/Webauthn.ts"

/**
 * Fails where a member that the kind needs is missing or the kind has no target: rules that the schema cannot express.
 */
export const wellFormed = ({ kind, label, target_id: target }: StartAction) => {
  const needsTarget = actionTable[kind].target !== "none"
  const detail = [
    ...(needsTarget && target == null
      ? [{ loc: ["body", "target_id"], type: "missing", msg: "Field required" }]
      : !needsTarget && target != null
      ? [{ loc: ["body", "target_id"], type: "value_error", msg: `Value error, ${kind} has no target` }]
      : []),
    ...(kind === "authenticator.rename" && label == null
      ? [{ loc: ["body", "label"], type: "missing", msg: "Field required" }]
      : []),
  ]
  return detail.length === 0 ? Effect.void : Effect.fail(new HTTPValidationError({ detail }))
}

const summaryOf = ({ kind, label }: StartAction, about: Authenticator | undefined): string => {
  const name = about === undefined ? "" : `"${about.label}"`
  switch (kind) {
    case "passkey.remove":
    case "totp.remove":
      return `Remove ${name}`
    case "authenticator.rename":
      return `Rename ${name} to "${label ?? ""}"`
    case "recovery_codes.generate":
      return "Make new recovery codes; the old ones end"
    case "session.revoke":
      return "End one session"
    default:
      return "End all other sessions"
  }
}

export const challenges = (sql: PgClient.PgClient, party: RelyingParty) => {
  const userOf = Effect.fnUntraced(function* (personId: PersonId) {
    const [person] = yield* sql<{ name: string; display_name: string | null }>`
      select coalesce(email, subject) as name, display_name from people where id = ${personId}`
    return { personId, name: person!.name, displayName: person!.display_name ?? person!.name }
  })

  /**
   * The challenge, and the parts of it that the intent stores: an app's seed, or the bytes that an authenticator signs.
   */
  return Effect.fnUntraced(function* (
    personId: PersonId,
    action: StartAction,
    owned: ReadonlyArray<Authenticator>,
    about: Authenticator | undefined,
  ) {
    const { proof } = actionTable[action.kind]
    if (proof === "confirm") {
      const challenge: Challenge = { type: "confirm", summary: summaryOf(action, about) }
      return { challenge, secret: null, signed: null }
    }
    const user = yield* userOf(personId)
    if (proof === "totp") {
      const secret = newSecret()
      const uri = uriOf(secret, user.name)
      const challenge: Challenge = { type: "totp", otpauth_uri: uri, secret: Redacted.value(secret) }
      return { challenge, secret, signed: null }
    }
    const known = owned.flatMap(({ credential_id: id, transports }) => id === null ? [] : [{ id, transports }])
    const options = yield* creationOptions(party, user, known)
    const challenge: Challenge = { type: "webauthn.create", public_key: { ...options } }
    return { challenge, secret: null, signed: options.challenge }
  })
}
