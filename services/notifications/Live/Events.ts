/**
 * Events of the live stream as bytes (HTML Living Standard, 9.2). An `id` is `<epoch>.<version>` of the inbox, and
 * every event carries the counts of the snapshot that it was read from.
 *
 * - `notification`: a notification that is new, was repeated, or was read. It replaces an earlier one with the same id.
 * - `read-all`: everything up to here is read.
 * - `counts`: only the counts have changed.
 * - `reset`: the client's position is unknown here; the client has to read its list again and goes on from this event.
 */
import type { Change } from "./Change.ts"

export interface Position {
  readonly epoch: string
  readonly version: number
}

/** The position of an empty inbox: everything is newer, in any epoch. */
export const beginning: Position = { epoch: "0", version: 0 }

/** The position in a client's Last-Event-ID; null where it cannot be a position. */
export const positionOf = (lastEventId: string): Position | null => {
  const match = /^([0-9a-f]{1,32})\.(\d{1,15})$/.exec(lastEventId)
  return match === null ? null : { epoch: match[1]!, version: Number(match[2]) }
}

const encoder = new TextEncoder()

interface Event {
  readonly version: number
  readonly name: "notification" | "read-all" | "counts" | "reset"
  /** JSON members before the counts, each with its comma. */
  readonly members: string
}

export interface EventBatch {
  readonly bytes: Uint8Array
  /** The client's position after it has read these bytes. */
  readonly position: Position
  /** Whether there were more changes than the page. */
  readonly more: boolean
}

/**
 * The events of a change for a client at `since` (null: a new client without a position); the change was read with
 * pages of `page` rows. `owed`: send the counts in any case.
 */
export const batchOf = (change: Change, since: Position | null, owed: boolean, page: number): EventBatch => {
  const { epoch, read_all_at, read_all_version, rows, total, unread, version } = change
  const now = { epoch, version }
  const counts: Event = { version, name: "counts", members: "" }
  const write = (events: ReadonlyArray<Event>, position: Position, more: boolean): EventBatch => {
    const text = events.map((event) =>
      `id: ${epoch}.${event.version}\nevent: ${event.name}\ndata: {${event.members}"total":${total},"unread":${unread}}\n\n`
    ).join("")
    return { bytes: encoder.encode(text), position, more }
  }
  if (since === null) return write([counts], now, false)
  const known = since.epoch === epoch || since.epoch === beginning.epoch && since.version === 0
  if (!known || since.version > version) return write([{ ...counts, name: "reset" }], now, false)
  const more = rows.length === page && rows.at(-1)!.version < version
  const upTo = more ? rows.at(-1)!.version : version
  const events: Array<Event> = rows.map((row) => ({
    version: row.version,
    name: "notification",
    members: `"notification":${row.body},`,
  }))
  if (read_all_version > since.version && read_all_version <= upTo) {
    events.push({ version: read_all_version, name: "read-all", members: `"read_at":"${read_all_at}",` })
    events.sort((a, b) => a.version - b.version)
  }
  if (!more && (owed || events.at(-1)?.version !== version)) events.push(counts)
  return write(events, { epoch, version: upTo }, more)
}
