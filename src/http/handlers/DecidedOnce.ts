/** `keyed` for a decision about a request: in two round trips, or in a transaction where the decision needs one. */
import { Effect } from "effect"
import { NeedsTransaction } from "../../../services/platform/database/FencedCommand.ts"
import { type IdempotentResponse, keyed, keyedFenced } from "./IdempotentResponse.ts"

export const decidedOnce = <A, I, E, R>(
  how: Pick<IdempotentResponse<A, I>, "principal" | "payload" | "dryRun" | "success">,
  command: Effect.Effect<A, E | NeedsTransaction, R>,
) => {
  const asked = { ...how, status: 200 }
  return keyedFenced(asked, command).pipe(
    Effect.catchIf((error) => error instanceof NeedsTransaction, () => keyed(asked, command)),
    Effect.catchIf((error) => error instanceof NeedsTransaction, Effect.die),
  )
}
