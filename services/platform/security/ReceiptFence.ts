/** Writes the receipt of an idempotency key as a fence of its command's one statement: both commit, or neither does. */
import type { PgClient } from "@effect/sql-pg"
import { Buffer } from "node:buffer"
import type { PendingReceipt } from "../../../schemas/identity/PendingReceipt.ts"
import { one } from "../database/FencedCommand.ts"
import type { Fence } from "../database/UnitOfWork.ts"

/** Of two commands with one key the second misses it, and begins anew. `body` is the answer to repetitions. */
export const receiptFence = (sql: PgClient.PgClient, receipt: PendingReceipt, body: string, now: Date): Fence =>
  one((earlier) =>
    sql`
    insert into idempotency_receipts (principal, method, path, key, fingerprint, kid, status, body, created_at)
    select ${receipt.principal}::text, ${receipt.method}::text, ${receipt.path}::text, ${receipt.key}::text,
      ${new Uint8Array(Buffer.from(receipt.fingerprint, "hex"))}::bytea, ${receipt.kid}::text, ${receipt.status}::int,
      ${body}::text, ${now}::timestamptz
    where ${earlier} on conflict do nothing returning 1`
  )
