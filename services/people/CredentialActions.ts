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
import type { SqlError } from "effect/sql"
import type { IntentId } from "../../schemas/BrandedIds.ts"
import type {
  Capabilities,
  FinishedAction,
  Proof,
  StartAction,
  StartedAction,
} from "../../schemas/identity/CredentialAction.ts"
import type { Freshness } from "../../schemas/identity/IdentityAccount.ts"
import type { NotFound } from "../../schemas/problems/HttpProblems.ts"
import type {
  InsufficientUserAuthentication,
  IntentExpired,
  InvalidState,
  InvalidToken,
  PortalBindingMismatch,
} from "../../schemas/problems/IdentityProblems.ts"
import type { HTTPValidationError } from "../../schemas/Validation.ts"
import { Database } from "../platform/database/Database.ts"
import type { InTransaction } from "../platform/database/UnitOfWork.ts"
import { Vault } from "../platform/security/Vault.ts"
import { Authenticators } from "./Authenticators.ts"
import type { RelyingParty } from "./Authenticators/Webauthn.ts"
import type { Me } from "./CredentialActions/ActingPerson.ts"
import { completing } from "./CredentialActions/CompleteAction.ts"
import type { ProofRejected } from "./CredentialActions/Effected.ts"
import { intents } from "./CredentialActions/Intents.ts"
import { refusing } from "./CredentialActions/RefuseProof.ts"
import { capabilitiesOf, freshnessOf } from "./CredentialActions/Rules.ts"
import { starting } from "./CredentialActions/StartAction.ts"

export { loadFor } from "./Authenticators/Webauthn.ts"
export { wellFormed } from "./CredentialActions/Challenges.ts"
export { ProofRejected } from "./CredentialActions/Effected.ts"

type Fault = NotFound | InvalidToken | InsufficientUserAuthentication | InvalidState | SqlError.SqlError

export class CredentialActions extends Context.Service<CredentialActions, {
  /** The actions that the person could take now, and whether this sign-in is enough for each. */
  readonly capabilities: (me: Me) => Effect.Effect<typeof Capabilities.Type>
  /** How fresh the sign-in is. `approvalMaxAge` in seconds; null where approvals need no fresh sign-in. */
  readonly freshness: (me: Me, approvalMaxAge: number | null) => Effect.Effect<Freshness>
  /** Starts a `wellFormed` action in the current transaction. `binding` is the portal's, where it sent one. */
  readonly start: (me: Me, action: StartAction, binding: string | undefined) => Effect.Effect<StartedAction, Fault>
  /** Completes an action in the current transaction. */
  readonly complete: (
    me: Me,
    intentId: IntentId,
    proof: Proof,
    binding: string | undefined,
  ) => Effect.Effect<
    FinishedAction,
    Fault | HTTPValidationError | PortalBindingMismatch | IntentExpired | ProofRejected,
    InTransaction
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
  /** `oneFactor`: the issuers that give no second factor (ConfiguredTokenIssuer.ts). */
  static readonly layer = (party: RelyingParty, oneFactor: ReadonlySet<string> = new Set()) =>
    Layer.effect(
      CredentialActions,
      Effect.gen(function* () {
        const { sql } = yield* Database
        const authenticators = yield* Authenticators
        const store = intents(sql, yield* Vault)

        const capabilities = Effect.fn("CredentialActions.capabilities")(function* (me: Me) {
          const owned = yield* Effect.orDie(authenticators.of(me.personId))
          return capabilitiesOf(me, owned, yield* Clock.currentTimeMillis, !oneFactor.has(me.issuer))
        })

        const freshness = Effect.fn("CredentialActions.freshness")(
          function* (me: Me, approvalMaxAge: number | null) {
            const owned = yield* Effect.orDie(authenticators.of(me.personId))
            return freshnessOf(me, owned, approvalMaxAge, yield* Clock.currentTimeMillis)
          },
        )

        return CredentialActions.of({
          capabilities,
          freshness,
          start: yield* starting(party, store),
          complete: yield* completing(party, store),
          refuse: yield* refusing(store),
          expire: Effect.map(
            Effect.flatMap(Clock.currentTimeMillis, (millis) => store.expire(new Date(millis))),
            (ended) => ended.length,
          ),
        })
      }),
    )
}
