/** Feeds responses to the parser, whole or in parts. */
import { Buffer } from "node:buffer"
import { ResponseParser } from "../../../../services/platform/Outbound/ResponseParser.ts"

export interface Read {
  readonly status: number | null
  readonly body: string
  readonly end: "done" | "refused" | "more"
  readonly keep: boolean
  /** Every byte belonged to the response. */
  readonly alone: boolean
}

/** Reads parts in order until the response ends or is refused; with `ended` the receiver then ends its side. */
export const read = (parts: ReadonlyArray<Uint8Array>, ended = false): Read => {
  let status: number | null = null
  let body = ""
  const parser = new ResponseParser({
    head: (found) => {
      if (status !== null) throw new Error("a second head")
      status = found
    },
    body: (chunk, from, to) => {
      if (to <= from || to > chunk.length) throw new Error(`a body of ${from} to ${to}`)
      body += chunk.toString("latin1", from, to)
    },
  })
  parser.begin()
  let alone = true
  for (const part of parts) {
    // A part after the response's end does not belong to it.
    alone = !parser.done && parser.read(Buffer.from(part)) && alone
    if (parser.refused) break
  }
  if (ended && !parser.done && !parser.refused) parser.end()
  const end = parser.done ? "done" : parser.refused ? "refused" : "more"
  return { status, body, end, keep: end === "done" && parser.keep && alone, alone: end !== "done" || alone }
}

export const bytesOf = (text: string): Buffer => Buffer.from(text, "latin1")

/** The same bytes cut in two at every index, and cut into single bytes. */
export const cuts = (bytes: Buffer): ReadonlyArray<ReadonlyArray<Buffer>> => [
  ...Array.from({ length: bytes.length - 1 }, (_, n) => [bytes.subarray(0, n + 1), bytes.subarray(n + 1)]),
  Array.from(bytes, (_, n) => bytes.subarray(n, n + 1)),
]
