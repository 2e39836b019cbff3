/**
 * COPY over a session of pg, whose parser knows its messages and whose client passes them to the active query.
 * `reading` gives rows as a stream, `writing` takes rows as a stream; the faster side waits for the slower one.
 */
import { Buffer } from "node:buffer"
import { once } from "node:events"
import { Readable } from "node:stream"
import type { Query, Wire } from "pg"

/** Messages that a COPY ignores. */
const quiet = {
  handleRowDescription: () => {},
  handleDataRow: () => {},
  handlePortalSuspended: () => {},
  handleEmptyQuery: () => {},
  handleCommandComplete: () => {},
  handleCopyData: () => {},
  handleCopyInResponse: () => {},
}

const heldBytes = 1024 * 1024

/** `copy … to stdout`: hand `query` to the client and read `rows`. */
export const reading = (text: string): { readonly query: Query; readonly rows: Readable } => {
  let wire: Wire | null = null
  const rows = new Readable({ highWaterMark: heldBytes, read: () => void wire?.stream.resume() })
  const query: Query = {
    ...quiet,
    submit: (to) => {
      wire = to
      to.query(text)
    },
    // Copied, since the chunk is a view of the buffer that the parser reuses.
    handleCopyData: ({ chunk }) => {
      if (!rows.push(Buffer.from(chunk))) wire?.stream.pause()
    },
    handleReadyForQuery: () => void rows.push(null),
    handleError: (error) => void rows.destroy(error),
  }
  return { query, rows }
}

/** `copy … from stdin` of these bytes: hand `query` to the client; `done` rejects where a row was refused. */
export const writing = (
  text: string,
  bytes: AsyncIterable<Uint8Array>,
): { readonly query: Query; readonly done: Promise<void> } => {
  const { promise: done, reject, resolve } = Promise.withResolvers<void>()
  let failed = false
  const send = async (wire: Wire) => {
    try {
      for await (const piece of bytes) {
        if (failed) return
        wire.sendCopyFromChunk(piece)
        if (wire.stream.writableNeedDrain) await once(wire.stream, "drain")
      }
      wire.endCopyFrom()
    } catch (error) {
      failed = true
      reject(error)
      // The server ends the statement, and with it the transaction.
      wire.sendCopyFail("cut short")
    }
  }
  const query: Query = {
    ...quiet,
    submit: (to) => to.query(text),
    handleCopyInResponse: (wire) => void send(wire),
    handleReadyForQuery: () => resolve(),
    handleError: (error) => {
      failed = true
      reject(error)
    },
  }
  return { query, done }
}
