/**
 * Rejected messages: a message that could not be taken is stored with its reason, so that it is neither lost nor stops
 * the messages after it. A message that is handed out again is stored once: its row's id is a digest of its stream,
 * sequence, subject and payload.
 */
import { Array, Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import { createHash } from "node:crypto"
import type { AccountId } from "../../../schemas/BrandedIds.ts"
import type { StreamName } from "../../../schemas/bus/BusStreams.ts"
import { Database } from "../database/Database.ts"
import { prune } from "../database/Prune.ts"

export interface Reject {
  readonly stream: StreamName
  readonly seq: number
  readonly subject: string
  /** A short code. */
  readonly reason: string
  /** A text for operators, without values of the message. */
  readonly detail: string | null
  /** The message's bytes; the first 64 KiB are kept. */
  readonly payload: Uint8Array
  /** The account that the message waits for, and until when. Without it the message is rejected for good. */
  readonly waiting?: { readonly accountId: AccountId; readonly until: Date }
}

const kept = 65_536
const keptMillis = 30 * 24 * 60 * 60_000
const batch = 1_000

// RFC 9562, 5.8: a UUIDv8, whose bits are a digest.
const idOf = ({ stream, seq, subject, payload }: Reject): string => {
  const hex = createHash("sha256").update(`${stream}\n${seq}\n${subject}\n`).update(payload).digest("hex")
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

// Subject and detail may hold characters that PostgreSQL's text cannot.
const printable = (text: string, max: number) => text.replace(/\p{Cc}/gu, "\ufffd").slice(0, max)

export class RejectedMessages extends Context.Service<RejectedMessages, {
  /** Stores rejects, in the current transaction where there is one. */
  readonly add: (rejects: ReadonlyArray<Reject>) => Effect.Effect<void, SqlError.SqlError>
  /** Deletes rejects that arrived 30 days ago or earlier and do not wait; returns how many. */
  readonly prune: Effect.Effect<number, SqlError.SqlError>
}>()("bailiwick/services/platform/messaging/RejectedMessages") {
  static readonly layer = Layer.effect(
    RejectedMessages,
    Effect.gen(function* () {
      const { sql } = yield* Database
      const add = Effect.fn("RejectedMessages.add")(function* (rejects: ReadonlyArray<Reject>) {
        const now = new Date(yield* Clock.currentTimeMillis)
        const rows = rejects.map((reject): Record<string, unknown> => ({
          id: idOf(reject),
          stream: reject.stream,
          stream_seq: reject.seq,
          subject: printable(reject.subject, 1024),
          reason: reject.reason,
          detail: reject.detail === null ? null : printable(reject.detail, 1024),
          payload: reject.payload.slice(0, kept),
          account_id: reject.waiting?.accountId ?? null,
          state: reject.waiting === undefined ? "rejected" : "waiting",
          received_at: now,
          expires_at: reject.waiting?.until ?? null,
        }))
        if (!Array.isReadonlyArrayNonEmpty(rows)) return
        yield* sql`insert into intake_rejects ${sql.insert(rows)} on conflict (id) do nothing`
      })

      const pruneOld = Effect.gen(function* () {
        const before = new Date((yield* Clock.currentTimeMillis) - keptMillis)
        const where = sql`received_at <= ${before} and state <> 'waiting'`
        return yield* prune(sql, { table: "intake_rejects", where, order: "received_at", batch })
      })
      return RejectedMessages.of({ add, prune: pruneOld })
    }),
  )
}
