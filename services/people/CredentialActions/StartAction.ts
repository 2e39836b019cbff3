/** Starts a credential action: checks that it can be taken, and makes its challenge. */
import { Clock, Effect } from "effect"
import { IntentId, SessionId } from "../../../schemas/BrandedIds.ts"
import { actionTable, intentTtlSeconds, type StartAction } from "../../../schemas/identity/CredentialAction.ts"
import { NotFound } from "../../../schemas/problems/HttpProblems.ts"
import { Audit } from "../../platform/observability/Audit.ts"
import { Database } from "../../platform/database/Database.ts"
import { Ids } from "../../platform/Ids.ts"
import { type Authenticator, Authenticators } from "../Authenticators.ts"
import type { RelyingParty } from "../Authenticators/Webauthn.ts"
import { Sessions } from "../Sessions.ts"
import { check } from "../StepUp.ts"
import { alone, type Me } from "./ActingPerson.ts"
import { challenges } from "./Challenges.ts"
import type { Intents } from "./Intents.ts"
import { demandOf, fits, refusedFor, unavailable } from "./Rules.ts"

export const starting = Effect.fnUntraced(function* (party: RelyingParty, store: Intents) {
  const { sql } = yield* Database
  const audit = yield* Audit
  const authenticators = yield* Authenticators
  const sessions = yield* Sessions
  const challengeFor = challenges(sql, party)

  /** The target of the action: null where the kind has none, NotFound where it is not the person's. */
  const targetOf = Effect.fnUntraced(
    function* (me: Me, { kind, target_id: id }: StartAction, owned: ReadonlyArray<Authenticator>) {
      const { target } = actionTable[kind]
      if (target === "none") return null
      const wanted = (id ?? "").toLowerCase()
      if (target === "session") {
        yield* sessions.find(me.personId, SessionId.make(wanted))
        return { id: wanted, authenticator: undefined }
      }
      const authenticator = owned.find((one) => one.id === wanted && fits(kind, one))
      return authenticator === undefined ? yield* new NotFound() : { id: wanted, authenticator }
    },
  )

  return Effect.fn("CredentialActions.start")(
    function* (me: Me, action: StartAction, binding: string | undefined) {
      yield* alone(sql, me)
      const owned = yield* authenticators.hold(me.personId)
      const target = yield* targetOf(me, action, owned)
      yield* check(me, demandOf(owned))
      const reason = unavailable(action.kind, owned, target?.authenticator)
      if (reason !== null) return yield* refusedFor(reason, target?.authenticator)
      const id = IntentId.make(yield* (yield* Ids).next)
      const now = yield* Clock.currentTimeMillis
      const expiresAt = new Date(now + intentTtlSeconds * 1_000)
      const { challenge, secret, signed } = yield* challengeFor(me.personId, action, owned, target?.authenticator)
      yield* store.add({
        id,
        personId: me.personId,
        kind: action.kind,
        targetId: target?.id ?? null,
        label: action.label ?? null,
        binding,
        challenge: signed,
        secret,
        now: new Date(now),
        expiresAt,
      })
      yield* audit.append({
        action: "credential-action.started",
        actor: me.principal,
        subject: `credential-action:${id}`,
        outcome: "done",
        details: { kind: action.kind },
      })
      return {
        intent_id: id,
        kind: action.kind,
        state: "pending" as const,
        expires_at: expiresAt.toISOString(),
        challenge,
      }
    },
  )
})
