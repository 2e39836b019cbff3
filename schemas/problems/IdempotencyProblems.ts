/** Problems of a request with an idempotency key (docs/api/identity.md). */
import { Schema } from "effect"
import { Problem } from "./Problem.ts"

export class IdempotencyKeyReused extends Problem<IdempotencyKeyReused>()(
  "IdempotencyKeyReused",
  "idempotency_key_reused",
  409,
  "The idempotency key came with another request before",
) {}

/** `retry_after` in whole seconds; the edge repeats it as `Retry-After`. */
export class IdempotencyInProgress extends Problem<IdempotencyInProgress>()(
  "IdempotencyInProgress",
  "idempotency_in_progress",
  409,
  "A request with this idempotency key is under way",
  { retry_after: Schema.Int },
) {}

export const receiptProblems = [IdempotencyKeyReused, IdempotencyInProgress] as const
