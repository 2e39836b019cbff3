/** The actions that add an authenticator: a passkey or security key, an app, recovery codes. */
import { Clock, Effect } from "effect"
import type { AuthenticatorId } from "../../../schemas/BrandedIds.ts"
import type { Proof } from "../../../schemas/identity/CredentialAction.ts"
import type { Authenticator } from "../Authenticators.ts"
import { stepOf } from "../Authenticators/Totp.ts"
import { registered, type RelyingParty } from "../Authenticators/Webauthn.ts"
import type { Happening } from "../SecurityEventFanout.ts"
import type { Me } from "./ActingPerson.ts"
import { changed, type Effected, type Means, nothing, ProofRejected } from "./Effected.ts"
import type { Intent } from "./Intents.ts"
import { refusedFor, unavailable } from "./Rules.ts"

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

export const factorsAdded = (
  party: RelyingParty,
  { authenticators, secretOf }: Pick<Means, "authenticators" | "secretOf">,
) => {
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

  return { register, enroll, generate }
}
