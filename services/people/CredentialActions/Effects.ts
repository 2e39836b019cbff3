/** Checks the proof of an action and carries the action out, in the current transaction. */
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import { SessionId } from "../../../schemas/BrandedIds.ts"
import type { Proof } from "../../../schemas/identity/CredentialAction.ts"
import type { NotFound } from "../../../schemas/problems/HttpProblems.ts"
import type { InvalidState } from "../../../schemas/problems/IdentityProblems.ts"
import type { Authenticator } from "../Authenticators.ts"
import type { RelyingParty } from "../Authenticators/Webauthn.ts"
import type { Happening } from "../SecurityEventFanout.ts"
import type { Me } from "./ActingPerson.ts"
import { factorsAdded } from "./AddFactor.ts"
import { factorsChanged } from "./ChangeFactor.ts"
import { type Effected, type Means, nothing, type ProofRejected } from "./Effected.ts"
import type { Intent } from "./Intents.ts"

const ended = (about: string | null, happenings: ReadonlyArray<Happening>): Effected => ({
  ...nothing,
  about,
  sessionsRevoked: happenings.length,
  happenings,
})

export const effectsOf = (party: RelyingParty, means: Means) => {
  const { enroll, generate, register } = factorsAdded(party, means)
  const { remove, rename } = factorsChanged(means)
  const { sessions } = means

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
