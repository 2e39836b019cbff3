/** The `idempotency-key` header (docs/api/identity.md): 1 to 255 visible ASCII characters, sent once. */
import { Schema } from "effect"

/** A repeated header arrives joined by a comma and a space, which no key contains. */
export const IdempotencyKey = Schema.String.check(Schema.isPattern(/^[\x21-\x7e]{1,255}$/u))

/** The headers of an operation that needs a key, and of one with an optional key. */
export const keyed = { "idempotency-key": IdempotencyKey }
export const optionallyKeyed = { "idempotency-key": Schema.optionalKey(IdempotencyKey) }
