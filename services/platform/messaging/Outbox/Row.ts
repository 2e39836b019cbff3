import type { StreamName } from "../../../../schemas/bus/Streams.ts"
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

/** The message of a row. A consumer of ordered streams drops what it has seen by `Bailiwick-Seq`. */
export const publicationOf = (row: OutboxRecord): BusPublication => ({
  subject: row.subject,
  data: row.payload,
  ...(row.msg_id === null ? {} : { msgId: row.msg_id }),
  headers: { ...row.headers, ...(row.seq === null ? {} : { "Bailiwick-Seq": String(row.seq) }) },
})

/**
 * The longest that a row waits to be tried again. What the broker may take later is tried often; what a stream has no room
 * for less often, since a mountain of it would keep everything else waiting; what the broker never will take seldom, in
 * case the code is mended.
 */
export const patienceMillis = ({ reason, retryable }: BusError): number =>
  !retryable ? 600_000 : reason === "refused" ? 30_000 : 2_000
