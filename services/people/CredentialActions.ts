/**
 * Credential actions: changes that people make to their authenticators and sessions. An action is started, which
 * returns a challenge, and completed by its proof within ten minutes; both steps need a fresh and strong sign-in, and
 * the second checks again everything that the first has checked.
 *
 * An action does everything in one transaction: rows, audit, and the events of every project that hears of the person.
 * An invalid proof is counted in a transaction of its own (`refuse`), since the transaction that found it is rolled
 * back. Starts and completions of one person run one after the other: each locks the person before anything else.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { SqlError } from "effect/sql"
import { IntentId, type PersonId, SessionId } from "../../schemas/BrandedIds.ts"
import type { Caller } from "../../schemas/api/ManagementApi.ts"
import type { Freshness } from "../../schemas/identity/IdentityAccount.ts"
import {
  actionTable,
  type Capabilities,
  type FinishedAction,
  intentTtlSeconds,
  type Proof,
  type StartAction,
  type StartedAction,
} from "../../schemas/identity/CredentialAction.ts"
import { NotFound } from "../../schemas/problems/HttpProblems.ts"
import {
  type InsufficientUserAuthentication,
  IntentExpired,
  InvalidState,
  InvalidToken,
  PortalBindingMismatch,
} from "../../schemas/problems/IdentityProblems.ts"
import { HTTPValidationError } from "../../schemas/Validation.ts"
import { Audit } from "../platform/observability/Audit.ts"
import { Database } from "../platform/database/Database.ts"
import { Ids } from "../platform/Ids.ts"
import { Vault } from "../platform/security/Vault.ts"
import { type Authenticator, Authenticators, viewOf } from "./Authenticators.ts"
import type { RelyingParty } from "./Authenticators/Webauthn.ts"
import { type Found, who } from "./CallerAuthentication.ts"
import { challenges } from "./CredentialActions/Challenges.ts"
import { type Effected, effectsOf, type ProofRejected } from "./CredentialActions/Effects.ts"
import { intents, isBound } from "./CredentialActions/Intents.ts"
import { capabilitiesOf, demandOf, fits, freshnessOf, refusedFor, unavailable } from "./CredentialActions/Rules.ts"
import { Sessions } from "./Sessions.ts"
import { check } from "./StepUp.ts"
import { SecurityEventFanout } from "./SecurityEventFanout.ts"

export { wellFormed } from "./CredentialActions/Challenges.ts"
export { ProofRejected } from "./CredentialActions/Effects.ts"

type Me = Caller["Service"] & { readonly personId: PersonId }

/** The problem for an intent that has ended already. */
const endedAs = (state: string) =>
  state === "expired" ? new IntentExpired() : new InvalidState({ state, allowed: ["pending"] })

type Fault = NotFound | InvalidToken | InsufficientUserAuthentication | InvalidState | SqlError.SqlError

export class CredentialActions extends Context.Service<CredentialActions, {
  /** Which actions the person could take now, and whether this sign-in is enough for each. */
  readonly capabilities: (me: Me) => Effect.Effect<typeof Capabilities.Type>
  /** How fresh the sign-in is. `approvalMaxAge` in seconds; null where approvals need no fresh sign-in. */
  readonly freshness: (me: Me, approvalMaxAge: number | null) => Effect.Effect<Freshness>
  /** Starts a `wellFormed` action in the current transaction. `binding` is the portal's, where it sent one. */
  readonly start: (me: Me, action: StartAction, binding: string | undefined) => Effect.Effect<StartedAction, Fault>
  /** Completes an action in the current transaction, which must be one of `Transact`. */
  readonly complete: (
    me: Me,
    intentId: IntentId,
    proof: Proof,
    binding: string | undefined,
  ) => Effect.Effect<
    FinishedAction,
    Fault | HTTPValidationError | PortalBindingMismatch | IntentExpired | ProofRejected
  >
  /**
   * Counts an invalid proof in its own transaction; returns the 422 to answer, or, after five, that the intent has
   * ended.
   */
  readonly refuse: (
    me: Me,
    rejected: ProofRejected,
  ) => Effect.Effect<HTTPValidationError | InvalidState | IntentExpired>
  /** Ends intents that were not completed in time, at most 10,000; returns how many. */
  readonly expire: Effect.Effect<number, SqlError.SqlError>
}>()("bailiwick/services/people/CredentialActions") {
  static readonly layer = (party: RelyingParty) =>
    Layer.effect(
      CredentialActions,
      Effect.gen(function* () {
        const { sql } = yield* Database
        const audit = yield* Audit
        const authenticators = yield* Authenticators
        const sessions = yield* Sessions
        const tellings = yield* SecurityEventFanout
        const store = intents(sql, yield* Vault)
        const challengeFor = challenges(sql, party)
        const effects = effectsOf(party, { authenticators, sessions, secretOf: store.secretOf })

        const capabilities = Effect.fn("CredentialActions.capabilities")(function* (me: Me) {
          const owned = yield* Effect.orDie(authenticators.of(me.personId))
          return capabilitiesOf(me, owned, yield* Clock.currentTimeMillis)
        })

        const freshness = Effect.fn("CredentialActions.freshness")(
          function* (me: Me, approvalMaxAge: number | null) {
            const owned = yield* Effect.orDie(authenticators.of(me.personId))
            return freshnessOf(me, owned, approvalMaxAge, yield* Clock.currentTimeMillis)
          },
        )

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

        /** Locks the person, so that commands run one at a time, and checks that no earlier one ended this session. */
        const alone = Effect.fnUntraced(function* (me: Me) {
          yield* sql`select from people where id = ${me.personId} for no key update`
          const [found] = yield* sql<Found>`${who(sql, me)}`
          if (found?.person_id !== me.personId || found.revoked) return yield* new InvalidToken()
        })

        const start = Effect.fn("CredentialActions.start")(
          function* (me: Me, action: StartAction, binding: string | undefined) {
            yield* alone(me)
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
            const eventIds = yield* tellings.tell(me.personId, done.happenings)
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

        const complete = Effect.fn("CredentialActions.complete")(
          function* (me: Me, intentId: IntentId, proof: Proof, binding: string | undefined) {
            yield* alone(me)
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

        const refuse = Effect.fn("CredentialActions.refuse")(
          function* (me: Me, { intentId, member }: ProofRejected) {
            const { counted, state } = yield* store.countBadProof(intentId, new Date(yield* Clock.currentTimeMillis))
            if (!counted) return endedAs(state)
            yield* audit.append({
              action: "credential-action.proof-rejected",
              actor: me.principal,
              subject: `credential-action:${intentId}`,
              outcome: "refused",
              details: { state },
            })
            return HTTPValidationError.at(["body", "proof", member], "proof_rejected", "The proof does not hold")
          },
          sql.withTransaction,
          Effect.catchTag("SqlError", Effect.die),
        )

        const expire = Effect.gen(function* () {
          return (yield* store.expire(new Date(yield* Clock.currentTimeMillis))).length
        })

        return CredentialActions.of({ capabilities, freshness, start, complete, refuse, expire })
      }),
    )
}
