/** Checks the proof of an action and carries the action out, in the current transaction. */
import { Clock, Effect, type Redacted, Schema } from "effect"
import type { SqlError } from "effect/sql"
import { type AuthenticatorId, IntentId, type PersonId, SessionId } from "../../../schemas/BrandedIds.ts"
import type { Caller } from "../../../schemas/api/ManagementApi.ts"
import type { Proof } from "../../../schemas/identity/CredentialAction.ts"
import { NotFound } from "../../../schemas/problems/HttpProblems.ts"
import type { InvalidState } from "../../../schemas/problems/IdentityProblems.ts"
import { type Authenticator, type Authenticators, credentialTypeOf } from "../Authenticators.ts"
import { stepOf } from "../Authenticators/Totp.ts"
import { registered, type RelyingParty } from "../Authenticators/Webauthn.ts"
import type { Sessions } from "../Sessions.ts"
import type { Happening } from "../SecurityEventFanout.ts"
import type { Intent } from "./Intents.ts"
import { fits, refusedFor, unavailable } from "./Rules.ts"

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

type Me = Caller["Service"] & { readonly personId: PersonId }

const nothing: Effected = {
  about: null,
  authenticatorId: null,
  recoveryCodes: null,
  sessionsRevoked: 0,
  happenings: [],
}

const changed = (
  one: Pick<Authenticator, "kind" | "platform" | "aaguid">,
  changeType: "create" | "update" | "delete",
): Happening => ({
  kind: "credential-change",
  credentialType: credentialTypeOf(one),
  changeType,
  aaguid: one.aaguid,
})

export const effectsOf = (party: RelyingParty, { authenticators, secretOf, sessions }: Means) => {
  const added = (id: AuthenticatorId, one: Pick<Authenticator, "kind" | "platform" | "aaguid">): Effected => ({
    ...nothing,
    about: `authenticator:${id}`,
    authenticatorId: id,
    happenings: [changed(one, "create")],
  })

  // Another authenticator may have been added since the action was started.
  const room = Effect.fnUntraced(function* ({ kind }: Intent, owned: ReadonlyArray<Authenticator>) {
    const reason = unavailable(kind, owned)
    if (reason !== null) return yield* refusedFor(reason)
  })

  const register = Effect.fnUntraced(function* (
    me: Me,
    intent: Intent,
    proof: Proof,
    owned: ReadonlyArray<Authenticator>,
  ) {
    yield* room(intent, owned)
    const rejected = new ProofRejected({ intentId: intent.id, member: "credential" })
    if (proof.type !== "webauthn.create") return yield* rejected
    const made = yield* registered(party, intent.challenge!, proof.credential)
    if (made === null) return yield* rejected
    const id = yield* authenticators.addWebauthn(me.personId, intent.label ?? "Passkey", made)
    return id === null ? yield* rejected : added(id, made)
  })

  const enroll = Effect.fnUntraced(function* (
    me: Me,
    intent: Intent,
    proof: Proof,
    owned: ReadonlyArray<Authenticator>,
  ) {
    yield* room(intent, owned)
    const rejected = new ProofRejected({ intentId: intent.id, member: "code" })
    if (proof.type !== "totp") return yield* rejected
    const secret = secretOf(intent)
    const step = stepOf(secret, proof.code, yield* Clock.currentTimeMillis)
    if (step === null) return yield* rejected
    const id = yield* authenticators.addTotp(me.personId, intent.label ?? "Authenticator app", secret, step)
    return added(id, { kind: "totp", platform: null, aaguid: null })
  })

  const generate = Effect.fnUntraced(function* (me: Me, intent: Intent, owned: ReadonlyArray<Authenticator>) {
    const { codes, id } = yield* authenticators.replaceCodes(me.personId, intent.label ?? "Recovery codes")
    const before = owned.some(({ kind }) => kind === "recovery_codes")
    const happenings: ReadonlyArray<Happening> = [
      changed({ kind: "recovery_codes", platform: null, aaguid: null }, before ? "update" : "create"),
      { kind: "recovery-information-changed" },
    ]
    return { ...nothing, about: `authenticator:${id}`, authenticatorId: id, recoveryCodes: codes, happenings }
  })

  // The target may have been removed, or become the last second factor, since the action was started.
  const targetOf = Effect.fnUntraced(function* (intent: Intent, owned: ReadonlyArray<Authenticator>) {
    const one = owned.find(({ id }) => id === intent.target_id)
    if (one === undefined || !fits(intent.kind, one)) return yield* new NotFound()
    const reason = unavailable(intent.kind, owned, one)
    return reason === null ? one : yield* refusedFor(reason, one)
  })

  const rename = Effect.fnUntraced(function* (intent: Intent, owned: ReadonlyArray<Authenticator>) {
    const one = yield* targetOf(intent, owned)
    yield* authenticators.rename(one.id, intent.label ?? one.label)
    return {
      ...nothing,
      about: `authenticator:${one.id}`,
      authenticatorId: one.id,
      happenings: [changed(one, "update")],
    }
  })

  const remove = Effect.fnUntraced(function* (intent: Intent, owned: ReadonlyArray<Authenticator>) {
    const one = yield* targetOf(intent, owned)
    yield* authenticators.remove(one.id)
    return { ...nothing, about: `authenticator:${one.id}`, happenings: [changed(one, "delete")] }
  })

  const ended = (about: string | null, happenings: ReadonlyArray<Happening>): Effected => ({
    ...nothing,
    about,
    sessionsRevoked: happenings.length,
    happenings,
  })

  return (
    me: Me,
    intent: Intent,
    proof: Proof,
    owned: ReadonlyArray<Authenticator>,
  ): Effect.Effect<Effected, ProofRejected | NotFound | InvalidState | SqlError.SqlError> => {
    switch (intent.kind) {
      case "passkey.register":
        return register(me, intent, proof, owned)
      case "totp.enroll":
        return enroll(me, intent, proof, owned)
      case "recovery_codes.generate":
        return generate(me, intent, owned)
      case "authenticator.rename":
        return rename(intent, owned)
      case "passkey.remove":
      case "totp.remove":
        return remove(intent, owned)
      case "session.revoke":
        return Effect.map(
          sessions.revoke(me.personId, SessionId.make(intent.target_id!)),
          (happenings) => ended(`session:${intent.target_id}`, happenings),
        )
      case "sessions.revoke_others":
        return Effect.map(sessions.revokeOthers(me), (happenings) => ended(null, happenings))
    }
  }
}
