import type { StreamName } from "../../../../schemas/bus/BusStreams.ts"
import type { BusError, BusPublication } from "../Bus.ts"

/** A row of the outbox as the relay reads it. */
export interface OutboxRecord {
  readonly id: string
  readonly stream: StreamName
  readonly subject: string
  readonly payload: string
  readonly headers: Readonly<Record<string, string>> | null
  readonly msg_id: string | null
  readonly aggregate_id: string | null
  readonly seq: bigint | null
  readonly lane: number | null
  readonly attempts: number
  readonly created_at: Date
}

/**
 * The message of a row. A consumer drops repeats by `Bailiwick-Id`: `Nats-Msg-Id` is missing from a copy that is published
 * again, since the broker, which may have lost the message, may still know its id. Consumers of an ordered stream also
 * have `Bailiwick-Seq`.
 */
export const publicationOf = (row: OutboxRecord): BusPublication => ({
  subject: row.subject,
  data: row.payload,
  ...(row.msg_id === null ? {} : { msgId: row.msg_id }),
  headers: {
    ...row.headers,
    "Bailiwick-Id": row.id,
    ...(row.seq === null ? {} : { "Bailiwick-Seq": String(row.seq) }),
  },
})

/**
 * The longest delay until a row is tried again: short where the broker may take it soon; longer where the stream has no
 * room, since many such rows would keep all others waiting; longest where the broker will never take it, in case the
 * code is mended.
 */
export const patienceMillis = ({ reason, retryable }: BusError): number =>
  !retryable ? 600_000 : reason === "refused" ? 30_000 : 2_000
