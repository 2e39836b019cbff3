/**
 * Entries that are noted in memory and written to the database later, many in one statement, so that no request waits
 * for them: every 10 s, on demand, and when the scope ends.
 *
 * The scope must end before that of the database's pools, which open no connection once theirs ends; a layer over
 * `Database` has this order. A killed process loses what it had noted.
 */
import { Cause, Effect, Schedule, type Scope, Semaphore } from "effect"
import { SqlError } from "effect/sql"
import { BoundedMap } from "../BoundedMap.ts"
import { counted } from "../MapSizes.ts"
import { isDataFault } from "./SqlErrors.ts"

const everyMillis = 10_000

/** How long a stop waits for the last write, so that a database that does not answer does not hold it up. */
const lastMillis = 5_000

export interface WriteBehindOptions<K, V, E> {
  /** The entries' name in the plural, for the gauge of `MapSizes` and for the log. */
  readonly name: string
  /** Entries that wait to be written; beyond that, the entry that was noted longest ago is dropped. */
  readonly most: number
  /** The value to write where a key is noted again before it is written. By default the later one. */
  readonly joined?: (before: V, next: V) => V
  /** Writes entries, all or none. A write whose answer was lost is repeated. */
  readonly write: (entries: ReadonlyMap<K, V>) => Effect.Effect<unknown, E>
  /** Called with each value that is dropped: one beyond `most`, or one that PostgreSQL refuses. */
  readonly dropped?: (value: V) => void
}

export interface WriteBehind<K, V> {
  /** Notes an entry, to be written. */
  readonly note: (key: K, value: V) => void
  /** Writes what is noted, after a write that is under way. Where that fails, it is logged and written later. */
  readonly flush: Effect.Effect<void>
  /** The same, where one of the noted values is wanted; after it no wanted value waits, unless the write failed. */
  readonly flushWanted: (isWanted: (value: V) => boolean) => Effect.Effect<void>
}

const isRefusedValue = (error: unknown): boolean => SqlError.isSqlError(error) && isDataFault(error)

const halvesOf = <K, V>(entries: ReadonlyMap<K, V>): ReadonlyArray<ReadonlyMap<K, V>> => {
  const all = [...entries]
  const half = all.length >> 1
  return [new Map(all.slice(0, half)), new Map(all.slice(half))]
}

/** Begins to write behind, until the scope ends. */
export const writeBehind = Effect.fnUntraced(function* <K, V, E>(
  { dropped, joined = (_, next) => next, most, name, write }: WriteBehindOptions<K, V, E>,
): Effect.fn.Return<WriteBehind<K, V>, never, Scope.Scope> {
  const none = () => new BoundedMap<K, V>(most, dropped)
  let noted = none()
  yield* counted(name, () => noted.size)

  const add = (to: Map<K, V>, key: K, value: V) => {
    const before = to.get(key)
    to.set(key, before === undefined ? value : joined(before, value))
  }

  /** Writes entries; an entry whose value PostgreSQL refuses is found by halves and dropped, or none would be written. */
  const writeAccepted = (entries: ReadonlyMap<K, V>): Effect.Effect<void, E> =>
    Effect.catchIf(Effect.asVoid(write(entries)), isRefusedValue, (error) => {
      if (entries.size > 1) return Effect.forEach(halvesOf(entries), writeAccepted, { discard: true })
      for (const value of entries.values()) dropped?.(value)
      return Effect.logError(`one of the ${name} was refused and is dropped`, error)
    })

  const written = Effect.uninterruptibleMask((restore) => {
    if (noted.size === 0) return Effect.void
    const entries = noted
    noted = none()
    return restore(writeAccepted(entries)).pipe(
      Effect.withSpan("WriteBehind.flush", { attributes: { name } }),
      Effect.catchCause((cause) => {
        for (const [key, value] of noted) add(entries, key, value)
        noted = entries
        return Cause.hasInterruptsOnly(cause) ? Effect.void : Effect.logWarning(`${name} were not written yet`, cause)
      }),
      Effect.asVoid,
    )
  })

  // One at a time: the entries of two writes could overtake each other.
  const one = Semaphore.makeUnsafe(1)
  const flush = one.withPermit(written)

  yield* Effect.addFinalizer(() => Effect.timeoutOption(Effect.interruptible(flush), lastMillis))
  yield* flush.pipe(Effect.schedule(Schedule.spaced(everyMillis)), Effect.forkScoped)

  return {
    note: (key, value) => add(noted, key, value),
    flush,
    // Not interruptible: the request that wants a value may be cancelled, but the entries belong to all requests.
    flushWanted: (isWanted) =>
      one.withPermit(Effect.uninterruptible(
        Effect.suspend(() => [...noted.values()].some(isWanted) ? written : Effect.void),
      )),
  }
})
