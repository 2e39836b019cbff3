/**
 * The receipt of an idempotency key on its way to the statement that writes its command: a command that an actor runs,
 * maybe in another process, carries it there (services/platform/security/ReceiptFence.ts). It holds no token and no body.
 */
import { Schema } from "effect"

export const PendingReceipt = Schema.Struct({
  principal: Schema.String,
  method: Schema.String,
  path: Schema.String,
  key: Schema.String,
  /** In hex. */
  fingerprint: Schema.String,
  /** The key of the vault that made the fingerprint. */
  kid: Schema.String,
  status: Schema.Int,
})
export type PendingReceipt = typeof PendingReceipt.Type
