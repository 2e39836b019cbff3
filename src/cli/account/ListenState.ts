/**
 * How far a `listen` has come: the time from which on it asks for deliveries, and those after it that the receiver has.
 *
 * Deliveries become visible in no exact order of their ids, so every question goes a minute back, and the ids of that
 * minute are kept.
 */
import { Effect, Schema } from "effect"
import { existsSync, readFileSync } from "node:fs"
import { writePrivate } from "../../embedded/Home.ts"
import { CliFault } from "../CliFault.ts"
import { reasonOf } from "../Reason.ts"

/** How far back every question goes. */
export const overlapMillis = 60_000

/** A secret that signs by both forms. */
export const secretPattern = /^whsec_[A-Za-z0-9+/]{16,128}={0,2}$/

export const ListenState = Schema.Struct({
  /** The secret that signs what the receiver gets. */
  secret: Schema.String.check(Schema.isPattern(secretPattern)),
  /** Milliseconds since the epoch. */
  since: Schema.Int,
  /** The ids of deliveries that the receiver has, and when each was made. */
  seen: Schema.Record(Schema.String, Schema.Int),
})
export type ListenState = typeof ListenState.Type

const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(ListenState))

/** The state after the receiver took this delivery. */
export const tookOne = (state: ListenState, id: string, madeAt: number): ListenState => {
  const since = Math.max(state.since, madeAt - overlapMillis)
  const kept = Object.entries({ ...state.seen, [id]: madeAt }).filter(([, at]) => at >= since - overlapMillis)
  return { ...state, since, seen: Object.fromEntries(kept) }
}

/** The state that a file holds; null where there is no file yet. */
export const readState = Effect.fnUntraced(function* (path: string) {
  if (!existsSync(path)) return null
  return yield* Effect.try(() => readFileSync(path, "utf8")).pipe(
    Effect.flatMap(decode),
    Effect.mapError(() => new CliFault({ message: `${path} is no file that "listen" has written: name another one` })),
  )
})

/** Writes the state, which holds a secret, for this user alone. */
export const writeState = (path: string, state: ListenState) =>
  Effect.try({
    try: () => writePrivate(path, `${JSON.stringify(state)}\n`),
    catch: (error) => new CliFault({ message: `cannot write ${path}: ${reasonOf(error)}` }),
  })
