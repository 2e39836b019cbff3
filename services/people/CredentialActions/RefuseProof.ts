/** Counts an invalid proof, in a transaction of its own: the transaction that found it is rolled back. */
import { Clock, Effect } from "effect"
import { HTTPValidationError } from "../../../schemas/Validation.ts"
import { Audit } from "../../platform/observability/Audit.ts"
import { Database } from "../../platform/database/Database.ts"
import type { Me } from "./ActingPerson.ts"
import type { ProofRejected } from "./Effected.ts"
import { endedAs, type Intents } from "./Intents.ts"

export const refusing = Effect.fnUntraced(function* (store: Intents) {
  const { sql } = yield* Database
  const audit = yield* Audit

  return Effect.fn("CredentialActions.refuse")(
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
})
