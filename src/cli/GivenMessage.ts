/** One line of a file of lost messages: as `nats stream get --json` prints a message, or a signed event as a consumer has it. */
import { Option, Schema } from "effect"
import type { GivenMessage } from "../../services/recovery/SuppliedMessages.ts"

const Stored = Schema.fromJsonString(Schema.Struct({
  subject: Schema.String,
  seq: Schema.Int.check(Schema.isGreaterThan(0)),
  data: Schema.Uint8ArrayFromBase64,
}))
const decode = Schema.decodeUnknownOption(Stored)

const streams: ReadonlyMap<string, GivenMessage["stream"]> = new Map([
  ["lifecycle", "LIFECYCLE"],
  ["transfers", "TRANSFERS"],
  ["directory", "DIRECTORY"],
])

const text = (bytes: Uint8Array): string | null => {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes)
  } catch {
    return null
  }
}

/** The bytes of a message that the broker takes at most (`max_payload`): none of its messages has more. */
const mostBytes = 1_048_576

const isTooLong = ({ data }: GivenMessage) => new TextEncoder().encode(data).length > mostBytes

const read = (line: string): GivenMessage | null => {
  if (/^[\w-]+\.[\w-]+\.[\w-]+$/.test(line.trim())) {
    return { stream: "LIFECYCLE", sequence: null, subject: null, data: line.trim() }
  }
  const stored = Option.getOrNull(decode(line))
  const stream = streams.get(stored?.subject.split(".")[0] ?? "")
  if (stored === null || stream === undefined) return null
  const data = text(stored.data)
  return data === null ? null : { stream, sequence: stored.seq, subject: stored.subject, data }
}

/** Null where the line is neither, or longer than a message can be. */
export const givenMessage = (line: string): GivenMessage | null => {
  const message = read(line)
  return message === null || isTooLong(message) ? null : message
}
