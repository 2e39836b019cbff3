/**
 * Events of the live stream as bytes (HTML Living Standard, 9.2). An `id` is `<epoch>.<version>` of the inbox, and every
 * event carries the counts of the snapshot that it was read from.
 *
 * - `notification`: one that is new, or said again, or was read. The same id again replaces what was there.
 * - `read-all`: everything up to here is read.
 * - `counts`: nothing to add but the counts.
 * - `reset`: the position that the client came with means nothing here; it reads its list anew and goes on from this one.
 */
import type { Change } from "./Change.ts"

export interface Position {
  readonly epoch: string
  readonly version: number
}

/** The position of an inbox that has never been told anything: all of it is newer, in whatever epoch. */
export const beginning: Position = { epoch: "0", version: 0 }

/** A position as a client repeats it; null where it cannot be one of ours. */
export const positionOf = (lastEventId: string): Position | null => {
  const match = /^([0-9a-f]{1,32})\.(\d{1,15})$/.exec(lastEventId)
  return match === null ? null : { epoch: match[1]!, version: Number(match[2]) }
}

const encoder = new TextEncoder()

/** A comment, which no client sees. */
export const heartbeat = encoder.encode(":\n\n")

const greetings = Array.from({ length: 16 }, (_, n) => encoder.encode(`retry: ${1_000 + 250 * n}\n\n`))

/**
 * What the nth stream begins with: when to come back, in milliseconds. Not all at the same moment, where all were cut by
 * one restart.
 */
export const greeting = (n: number): Uint8Array => greetings[n % greetings.length]!

interface Event {
  readonly version: number
  readonly name: "notification" | "read-all" | "counts" | "reset"
  /** JSON members before the counts, each with its comma. */
  readonly members: string
}

export interface Told {
  readonly bytes: Uint8Array
  /** Where the client stands when it has read them. */
  readonly position: Position
  /** Whether there was more than the page. */
  readonly more: boolean
}

/**
 * What a client at `since` (null: just come, without a position) is told of a change that was read with pages of `page`
 * rows. `owed`: it gets the counts in any case.
 */
export const told = (change: Change, since: Position | null, owed: boolean, page: number): Told => {
  const { epoch, read_all_at, read_all_version, rows, total, unread, version } = change
  const now = { epoch, version }
  const counts: Event = { version, name: "counts", members: "" }
  const write = (events: ReadonlyArray<Event>, position: Position, more: boolean): Told => {
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
