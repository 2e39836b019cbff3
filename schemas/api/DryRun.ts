/**
 * `?dry_run=true` of an approval: it is decided and not carried out. The answer is 204 where the approval would be
 * accepted now, and otherwise the very problem that it would get. Nothing changes, and the request's `Idempotency-Key`
 * stays unused.
 */
import { Schema } from "effect"
import { QueryBoolean } from "../Validation/Scalars.ts"

export const dryRun = { dry_run: Schema.optionalKey(QueryBoolean) }
