/**
 * The results that wait to be settled, and the loop that settles them, batch by batch. A batch that the database refuses
 * for one of its results is split, so that only that result is left to its claim's end.
 */
import { type Clock, Effect, Latch } from "effect"
import type { SqlError } from "effect/sql"
import { isDataFault, mayPass } from "../../platform/database/SqlErrors.ts"
import type { Sender } from "../Sender.ts"
import { releasedOf, type Result } from "../Sender/Task.ts"
import { Unsettled } from "./Unsettled.ts"

// A round trip of a busy process costs as much as hundreds of results in it.
const most = 2_000
/** What a settlement shrinks to at last while each takes longer than a statement may. */
const least = 125
// A settlement costs as much as some forty results in it, and its commit holds up intake's; what is lost by a kill
// meanwhile is sent again.
const everyMillis = 25
const againMillis = 1_000
/** After so many refusals that are not the database's state, a batch is given up. */
const refusals = 60

export interface QueueOptions {
  readonly sender: Sender["Service"]
  /** How long a claim holds, in milliseconds. */
  readonly lease: number
  /** Settles one batch. */
  readonly settle: (batch: ReadonlyArray<Result>) => Effect.Effect<unknown, SqlError.SqlError>
  /** Called whenever there may be room again. */
  readonly onRoom: () => void
}

export type SettlementQueue = ReturnType<typeof makeQueue>

export const makeQueue = ({ lease, onRoom, sender, settle }: QueueOptions, clock: Clock.Clock) => {
  const { slots } = sender
  const unsettled = new Unsettled()
  /** Open while results wait, while there are any at all, and after any were settled. */
  const [arrived, some, changed] = [Latch.makeUnsafe(false), Latch.makeUnsafe(false), Latch.makeUnsafe(false)]
  const millis = () => clock.currentTimeMillisUnsafe()
  let closed = false
  let size = most
  let refused = 0

  /** For how long the oldest result has been here, in milliseconds. */
  const age = () => millis() - (unsettled.oldest() ?? millis())

  /** Tells the slots how much room the results take, and whether anything may be claimed beside them. */
  const weigh = () => {
    closed = age() > lease / 4
    slots.hold(unsettled.size, closed)
  }

  const add = (results: ReadonlyArray<Result>) => {
    if (results.length === 0) return
    for (const result of results) unsettled.add(result, millis())
    slots.hold(unsettled.size, closed)
    arrived.openUnsafe()
    some.openUnsafe()
  }

  /** What was taken is over: settled, given up, or to be tried again. */
  const over = () => {
    if (unsettled.waits === 0) arrived.closeUnsafe()
    if (unsettled.size === 0) some.closeUnsafe()
    weigh()
    changed.openUnsafe()
    onRoom()
  }

  /** A result that PostgreSQL refuses is left to its claim's end, and holds up no other. */
  const settleSplit = (batch: ReadonlyArray<Result>): Effect.Effect<void, SqlError.SqlError> =>
    Effect.catchTag(Effect.asVoid(settle(batch)), "SqlError", (error) => {
      if (!isDataFault(error)) return Effect.fail(error)
      if (batch.length === 1) return Effect.logError("a result was refused: its claim expires", error)
      const half = batch.length >> 1
      return Effect.andThen(settleSplit(batch.slice(0, half)), settleSplit(batch.slice(half)))
    })

  const failed = Effect.fnUntraced(function* (error: SqlError.SqlError) {
    yield* Effect.logWarning("settling failed, trying again", error)
    if (error.reason._tag === "StatementTimeoutError") size = Math.max(least, size >> 1)
    if (!mayPass(error) && ++refused > refusals) {
      refused = 0
      yield* Effect.logError("results given up after a minute: their claims expire", error)
      return
    }
    unsettled.putBack()
    arrived.openUnsafe()
    yield* Effect.sleep(againMillis)
  })

  // Results that the database does not take are kept until it does: they take room, so there are never many. What a stop
  // cuts off is settled once more; the fence makes that harmless.
  const flush = Effect.suspend(() => {
    const batch = unsettled.take(size)
    if (batch.length === 0) return Effect.sync(over)
    return settleSplit(batch).pipe(
      Effect.andThen(Effect.sync(() => {
        size = Math.min(most, size * 2)
        refused = 0
      })),
      Effect.catch(failed),
      Effect.onInterrupt(() => Effect.sync(() => unsettled.putBack())),
      Effect.ensuring(Effect.sync(() => {
        unsettled.ended()
        over()
      })),
    )
  })

  /** Gives back what was not begun, waits up to 5 s for what was, and settles all of it. */
  const stop = Effect.gen(function* () {
    add(sender.stop().map(releasedOf))
    while (slots.load.claimed > 0 || unsettled.size > 0) {
      yield* flush
      // Slots that an acceptance under way gives back make no result.
      if (unsettled.size === 0 && slots.load.claimed > 0) yield* Effect.timeoutOption(arrived.await, everyMillis)
    }
  }).pipe(
    Effect.interruptible,
    Effect.timeoutOption("5 seconds"),
    // What was POSTed and is not answered yet ends here, not with its lease.
    Effect.andThen(Effect.suspend(() => settleSplit([...unsettled.take(Infinity), ...sender.abandon()]))),
    Effect.interruptible,
    Effect.timeout("7 seconds"),
    Effect.catchCause((cause) => Effect.logWarning("claims were not given back: their leases end", cause)),
  )

  /** Settles for ever; a stop goes through `stop`. */
  const settling: Effect.Effect<never> = Effect.gen(function* () {
    yield* arrived.await
    if (unsettled.waits < most) yield* Effect.sleep(everyMillis)
    yield* flush
  }).pipe(
    // Nobody else settles: whatever goes wrong with one batch, the next one comes.
    Effect.catchDefect((defect) =>
      Effect.andThen(
        Effect.logError("settling failed: the claims of its results expire", defect),
        Effect.sleep("1 second"),
      )
    ),
    Effect.forever,
    Effect.onInterrupt(() => stop),
  )

  return { add, age, changed, settling, some, unsettled, weigh }
}
