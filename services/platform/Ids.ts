/**
 * Ids that we make: UUIDv7 of Effect's Clock, made in the program so that a row's id is known before its transaction.
 * Ascending within one process; between processes only the millisecond orders them.
 */
import { Context, Effect } from "effect"
import { SecureRandom } from "effect/crypto"

const random = SecureRandom.make((size) => globalThis.crypto.getRandomValues(new Uint8Array(size)))

export class Ids extends Context.Reference<{
  /** One new UUIDv7. */
  readonly next: Effect.Effect<string>
  /** `n` ascending UUIDv7s. */
  readonly batch: (n: number) => Effect.Effect<ReadonlyArray<string>>
}>("bailiwick/services/platform/Ids", {
  defaultValue: () => ({
    next: random.uuidV7(),
    batch: (n) => Effect.all(Array.from({ length: n }, () => random.uuidV7())),
  }),
}) {}

/** The millisecond that a UUIDv7 carries. */
export const millisOf = (id: string): number => parseInt(id.slice(0, 8) + id.slice(9, 13), 16)

/** The smallest UUIDv7 of a millisecond: a bound for ranges and partitions. */
export const floorOf = (millis: number): string => {
  const hex = Math.max(0, Math.trunc(millis)).toString(16).padStart(12, "0")
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000000`
}
