/** Completes a credential action by its proof: carries it out, and tells every project that hears of the person. */
import { Clock, Effect } from "effect"
import type { IntentId } from "../../../schemas/BrandedIds.ts"
import { actionTable, type Proof, type StartAction } from "../../../schemas/identity/CredentialAction.ts"
import { NotFound } from "../../../schemas/problems/HttpProblems.ts"
import { IntentExpired, PortalBindingMismatch } from "../../../schemas/problems/IdentityProblems.ts"
import { HTTPValidationError } from "../../../schemas/Validation.ts"
import { Audit } from "../../platform/observability/Audit.ts"
import { Database } from "../../platform/database/Database.ts"
import { Authenticators, viewOf } from "../Authenticators.ts"
import type { RelyingParty } from "../Authenticators/Webauthn.ts"
import { SecurityEventFanout } from "../SecurityEventFanout.ts"
import { Sessions } from "../Sessions.ts"
import { check } from "../StepUp.ts"
import { alone, type Me } from "./ActingPerson.ts"
import type { Effected } from "./Effected.ts"
import { effectsOf } from "./Effects.ts"
import { endedAs, type Intents, isBound } from "./Intents.ts"
import { demandOf } from "./Rules.ts"

export const completing = Effect.fnUntraced(function* (party: RelyingParty, store: Intents) {
  const { sql } = yield* Database
  const audit = yield* Audit
  const authenticators = yield* Authenticators
  const fanout = yield* SecurityEventFanout
  const effects = effectsOf(party, { authenticators, sessions: yield* Sessions, secretOf: store.secretOf })

  /** Records what an action did and appends its events. */
  const conclude = Effect.fnUntraced(
    function* (me: Me, intentId: IntentId, kind: StartAction["kind"], done: Effected) {
      const now = new Date(yield* Clock.currentTimeMillis)
      yield* store.complete(intentId, now)
      yield* audit.append({
        action: "credential-action.completed",
        actor: me.principal,
        subject: `credential-action:${intentId}`,
        outcome: "done",
        details: { kind, about: done.about, sessions_revoked: done.sessionsRevoked },
      })
      const eventIds = yield* fanout.tell(me.personId, done.happenings)
      const owned = done.authenticatorId === null ? [] : yield* authenticators.of(me.personId)
      const authenticator = owned.find(({ id }) => id === done.authenticatorId)
      return {
        intent_id: intentId,
        kind,
        state: "completed" as const,
        completed_at: now.toISOString(),
        authenticator: authenticator === undefined ? null : viewOf(authenticator, owned),
        recovery_codes: done.recoveryCodes,
        sessions_revoked: done.sessionsRevoked,
        event_ids: eventIds,
      }
    },
  )

  return Effect.fn("CredentialActions.complete")(
    function* (me: Me, intentId: IntentId, proof: Proof, binding: string | undefined) {
      yield* alone(sql, me)
      const intent = yield* store.hold(me.personId, intentId)
      if (intent === null) return yield* new NotFound()
      if (!isBound(intent, binding)) return yield* new PortalBindingMismatch()
      const owned = yield* authenticators.hold(me.personId)
      yield* check(me, demandOf(owned))
      if (intent.state !== "pending") return yield* endedAs(intent.state)
      const now = yield* Clock.currentTimeMillis
      if (intent.expires_at.getTime() <= now) return yield* new IntentExpired()
      const wanted = actionTable[intent.kind].proof
      if (proof.type !== wanted) {
        return yield* HTTPValidationError.at(
          ["body", "proof", "type"],
          "literal_error",
          `Input should be '${wanted}'`,
        )
      }
      return yield* conclude(me, intent.id, intent.kind, yield* effects(me, intent, proof, owned))
    },
  )
})
