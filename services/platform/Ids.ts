/**
 * Makes ids: UUIDv7 of Effect's Clock, made in the program so that a row's id is known before its transaction. Ids
 * ascend within one process, however many are made in a millisecond; between processes only the millisecond orders
 * them. A batch of ids needs one Effect, since each event and each delivery take an id.
 */
import { Clock, Context, Effect, Layer } from "effect"

// RFC 9562, 6.2, method 1: 42 bits count on from a random start within a millisecond, 32 bits are random each time.
const words = new Uint32Array(1024)
let used = words.length
const random = (): number => {
  if (used === words.length) {
    globalThis.crypto.getRandomValues(words)
    used = 0
  }
  return words[used++]!
}

const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, "0")

/** Looked up: `toString(16)` takes three times as long, and a delivery takes four of these numbers. */
const hexOfByte = Array.from({ length: 256 }, (_, byte) => hex(byte, 2))
const hexOf16 = (value: number): string => hexOfByte[(value >>> 8) & 0xff]! + hexOfByte[value & 0xff]!

/** A generator of ids, ascending among themselves. */
const generator = () => {
  let millisecond = -1
  let time = ""
  let high = 0
  /** `high` as digits. */
  let counting = "000"
  let low = 0

  const begin = (millis: number): void => {
    millisecond = millis
    const digits = hex(millis, 12)
    time = `${digits.slice(0, 8)}-${digits.slice(8)}-7`
    high = random() & 0x7ff
    counting = hex(high, 3)
    low = random() >>> 2
  }

  const uuidV7 = (now: number): string => {
    const millis = Math.max(0, Math.trunc(now))
    if (millis > millisecond) begin(millis)
    else if (++low > 0x3fffffff) {
      low = 0
      if (++high > 0xfff) begin(millisecond + 1)
      else counting = hex(high, 3)
    }
    const counted = 0x80000000 + low
    const drawn = random()
    return `${time}${counting}-${hexOf16(counted >>> 16)}-${hexOf16(counted)}${hexOf16(drawn >>> 16)}${hexOf16(drawn)}`
  }

  return {
    next: Effect.map(Clock.currentTimeMillis, uuidV7),
    batch: (n: number): Effect.Effect<ReadonlyArray<string>> =>
      Effect.map(Clock.currentTimeMillis, (now) => Array.from({ length: n }, () => uuidV7(now))),
  }
}

export class Ids extends Context.Reference<{
  /** One new UUIDv7. */
  readonly next: Effect.Effect<string>
  /** `n` ascending UUIDv7s. */
  readonly batch: (n: number) => Effect.Effect<ReadonlyArray<string>>
}>("bailiwick/services/platform/Ids", { defaultValue: generator }) {
  /** A generator of its own, whose ids ascend among themselves: ids of a later clock do not raise their time. */
  static readonly own = Layer.sync(Ids, generator)
}

/** The millisecond that a UUIDv7 carries. */
export const millisOf = (id: string): number => parseInt(id.slice(0, 8) + id.slice(9, 13), 16)

/** The smallest UUIDv7 of a millisecond: a bound for ranges and partitions. */
export const leastIdAt = (millis: number): string => {
  const digits = hex(Math.max(0, Math.trunc(millis)), 12)
  return `${digits.slice(0, 8)}-${digits.slice(8)}-7000-8000-000000000000`
}
