/** The receipt of a command on a transfer, with the transfer as the command leaves it. */
import type { PgClient } from "@effect/sql-pg"
import { Schema } from "effect"
import type { PendingReceipt } from "../../../schemas/identity/PendingReceipt.ts"
import { DomainTransfer } from "../../../schemas/mail/Transfer.ts"
import type { Fence } from "../../platform/database/UnitOfWork.ts"
import { receiptFence } from "../../platform/security/ReceiptFence.ts"
import type { Transition } from "./TransferCommands.ts"
import { viewOf } from "./TransferState.ts"

const encode = Schema.encodeSync(DomainTransfer)

/** The last fence of a command's write; none where its request has no idempotency key. */
export const receiptOf = (
  sql: PgClient.PgClient,
  receipt: PendingReceipt | undefined,
  { state }: Transition,
  now: number,
): ReadonlyArray<Fence> =>
  receipt === undefined ? [] : [receiptFence(sql, receipt, JSON.stringify(encode(viewOf(state, now))), new Date(now))]
