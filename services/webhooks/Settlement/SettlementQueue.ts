/**
 * The queue of results to settle, and the loop that settles them in batches. A batch that the database refuses because
 * of one result is split, so that only that result is dropped; its claim then expires.
 */
import { type Clock, Effect, Latch } from "effect"
import type { SqlError } from "effect/sql"
import { isDataFault, mayPass } from "../../platform/database/SqlErrors.ts"
import type { Sender } from "../Sender.ts"
import { releasedOf, type Result } from "../Sender/Task.ts"
import { Unsettled } from "./Unsettled.ts"

// The round trip of a batch costs a busy process as much as hundreds of results.
const most = 2_000
/** The smallest batch; batches shrink while their statements time out. */
const least = 125
// A batch itself costs as much as some forty results, and its commit delays those of intake, so results wait for more
// of them. Deliveries whose results are lost by a kill meanwhile are sent again.
const everyMillis = 25
const againMillis = 1_000
/** A batch is given up after this many errors that waiting does not cure. */
const refusals = 60

export interface QueueOptions {
  readonly sender: Sender["Service"]
  /** The lease of a claim, in milliseconds. */
  readonly lease: number
  /** Settles one batch. */
  readonly settle: (batch: ReadonlyArray<Result>) => Effect.Effect<unknown, SqlError.SqlError>
  /** Is called whenever there may be room for claims. */
  readonly onRoom: () => void
}

export type SettlementQueue = ReturnType<typeof makeQueue>

export const makeQueue = ({ lease, onRoom, sender, settle }: QueueOptions, clock: Clock.Clock) => {
  const { slots } = sender
  const unsettled = new Unsettled()
  /** `arrived`: results wait; `some`: there are unsettled results; `changed`: a batch has ended. */
  const [arrived, some, changed] = [Latch.makeUnsafe(false), Latch.makeUnsafe(false), Latch.makeUnsafe(false)]
  const millis = () => clock.currentTimeMillisUnsafe()
  let closed = false
  let size = most
  let refused = 0

  /** The age of the oldest unsettled result, in milliseconds. */
  const age = () => millis() - (unsettled.oldest() ?? millis())

  /** Sets how much room the results take, and whether deliveries may be claimed at all. */
  const updateRoom = () => {
    closed = age() > lease / 4
    slots.setUnsettled(unsettled.size, closed)
  }

  const add = (results: ReadonlyArray<Result>) => {
    if (results.length === 0) return
    for (const result of results) unsettled.add(result, millis())
    slots.setUnsettled(unsettled.size, closed)
    arrived.openUnsafe()
    some.openUnsafe()
  }

  /** Ends a batch: its results are settled, given up, or wait again. */
  const batchEnded = () => {
    if (unsettled.waits === 0) arrived.closeUnsafe()
    if (unsettled.size === 0) some.closeUnsafe()
    updateRoom()
    changed.openUnsafe()
    onRoom()
  }

  /** Settles a batch. A result that PostgreSQL refuses is dropped, and does not delay the others. */
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

  // Results are kept while the database is away; they take room, so their number is bounded. A batch that a stop cuts
  // off is settled again, which the fence makes harmless.
  const flush = Effect.suspend(() => {
    const batch = unsettled.take(size)
    if (batch.length === 0) return Effect.sync(batchEnded)
    return settleSplit(batch).pipe(
      Effect.andThen(Effect.sync(() => {
        size = Math.min(most, size * 2)
        refused = 0
      })),
      Effect.catch(failed),
      Effect.onInterrupt(() => Effect.sync(() => unsettled.putBack())),
      Effect.ensuring(Effect.sync(() => {
        unsettled.ended()
        batchEnded()
      })),
    )
  })

  /** Gives back claims that were not begun, waits up to 5 s for those that were, and settles all results. */
  const stop = Effect.gen(function* () {
    add(sender.stop().map(releasedOf))
    while (slots.load.claimed > 0 || unsettled.size > 0) {
      yield* flush
      // An acceptance in progress may give back slots without a result.
      if (unsettled.size === 0 && slots.load.claimed > 0) yield* Effect.timeoutOption(arrived.await, everyMillis)
    }
  }).pipe(
    Effect.interruptible,
    Effect.timeoutOption("5 seconds"),
    // POSTs without an answer are settled as interrupted now, not when their leases end.
    Effect.andThen(Effect.suspend(() => settleSplit([...unsettled.take(Infinity), ...sender.abandon()]))),
    Effect.interruptible,
    Effect.timeout("7 seconds"),
    Effect.catchCause((cause) => Effect.logWarning("claims were not given back: their leases end", cause)),
  )

  /** Settles; does not end. An interruption runs `stop`. */
  const settling: Effect.Effect<never> = Effect.gen(function* () {
    yield* arrived.await
    if (unsettled.waits < most) yield* Effect.sleep(everyMillis)
    yield* flush
  }).pipe(
    // No other fiber settles: after a defect in one batch, go on with the next one.
    Effect.catchDefect((defect) =>
      Effect.andThen(
        Effect.logError("settling failed: the claims of its results expire", defect),
        Effect.sleep("1 second"),
      )
    ),
    Effect.forever,
    Effect.onInterrupt(() => stop),
  )

  return { add, age, changed, settling, some, unsettled, updateRoom }
}
