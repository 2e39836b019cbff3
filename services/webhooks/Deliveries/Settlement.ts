/**
 * Settles results batch by batch, and keeps the process from claiming more than it settles.
 *
 * A claim whose result is not settled before its lease ends is freed by some process, and its delivery is sent again.
 * Four things prevent that, from the first to the last:
 *
 * 1. An unsettled result takes room as a claim does (`Slots`), so at most 4,096 deliveries are in memory, whatever the
 *    database does. A settlement takes up to 2,000 results, those whose lease ends first.
 * 2. While a result is older than a quarter of a lease, nothing is claimed; half a lease is logged. A result is older
 *    than that only while the database settles nothing.
 * 3. The lease of a result that is not settled is renewed when less than a third of it is left, in one statement a look:
 *    renewing costs the database a fraction of settling, and waits for no lock. A process that renews nothing is dead,
 *    frozen or cut off, and this one cannot be told from those by any other.
 * 4. While the database is away, no process renews a lease. A process frees no claim while it has itself a result whose
 *    lease is over, nor for one and a half leases after it last failed to read the expired claims: each holder of
 *    results settles them first.
 *
 * What remains: a process that alone cannot reach the database for longer than its leases. What it had in memory when
 * that began, and nothing else, is sent again by others.
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect, Exit, Latch } from "effect"
import type { SqlError } from "effect/sql"
import { isDataFault, mayPass } from "../../platform/database/SqlErrors.ts"
import type { Sender } from "../Sender.ts"
import { releasedOf, type Result } from "../Sender/Task.ts"
import { expired, renew } from "./DeliveryClaims.ts"
import { gaugeUnsettled } from "./Metrics.ts"
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
const expiredBatch = 500
const warnEveryMillis = 60_000

export interface SettlementOptions {
  readonly sql: PgClient.PgClient
  readonly sender: Sender["Service"]
  /** How long a claim holds, in milliseconds. */
  readonly lease: number
  /** Settles what became of claims; gives how many it did. */
  readonly settleAll: (batch: ReadonlyArray<Result>) => Effect.Effect<number, SqlError.SqlError>
  /** Called whenever there may be room again. */
  readonly onRoom: () => void
}

export const makeSettlement = ({ lease, onRoom, sender, settleAll, sql }: SettlementOptions, clock: Clock.Clock) => {
  const { slots } = sender
  const unsettled = new Unsettled()
  /** Open while results wait, while there are any at all, and after any were settled. */
  const [arrived, some, changed] = [Latch.makeUnsafe(false), Latch.makeUnsafe(false), Latch.makeUnsafe(false)]
  const millis = () => clock.currentTimeMillisUnsafe()
  let closed = false
  let size = most
  let refused = 0
  let warnedAt = -Infinity
  let freesFrom = -Infinity

  const age = () => millis() - (unsettled.oldest() ?? millis())

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
  const settleEach = (batch: ReadonlyArray<Result>): Effect.Effect<void, SqlError.SqlError> =>
    Effect.catchTag(Effect.asVoid(settleAll(batch)), "SqlError", (error) => {
      if (!isDataFault(error)) return Effect.fail(error)
      if (batch.length === 1) return Effect.logError("a result was refused: its claim expires", error)
      const half = batch.length >> 1
      return Effect.andThen(settleEach(batch.slice(0, half)), settleEach(batch.slice(half)))
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
    return settleEach(batch).pipe(
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

  const settling = Effect.gen(function* () {
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
    Effect.onInterrupt(() =>
      Effect.gen(function* () {
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
        Effect.andThen(Effect.suspend(() => settleEach([...unsettled.take(Infinity), ...sender.abandon()]))),
        Effect.interruptible,
        Effect.timeout("7 seconds"),
        Effect.catchCause((cause) => Effect.logWarning("claims were not given back: their leases end", cause)),
      )
    ),
  )

  const look = Effect.gen(function* () {
    weigh()
    const old = age()
    yield* gaugeUnsettled(unsettled.size, old)
    if (old <= lease / 2 || millis() - warnedAt < warnEveryMillis) return
    warnedAt = millis()
    yield* Effect.logWarning(
      `${unsettled.size} results are not settled, the oldest for ${
        Math.round(old / 1_000)
      } s, which is over half of its ` +
        "lease: nothing is claimed until the database settles them",
    )
  })

  const renewing = Effect.gen(function* () {
    const claims = unsettled.endingBefore(millis() + lease / 3)
    if (claims.length === 0) return
    const until = millis() + lease
    const rows = yield* renew(sql, claims, new Date(until))
    unsettled.renewed(new Set(rows.map(({ id }) => id)), until)
  })

  /** Every look, while there are results, and once when there are none any more. */
  const eachLook = (turn: Effect.Effect<void, SqlError.SqlError>) =>
    some.await.pipe(
      Effect.andThen(Effect.sleep(Math.min(1_000, lease / 12))),
      Effect.andThen(turn),
      Effect.catchCause((cause) => Effect.logDebug("a look at unsettled results failed", cause)),
      Effect.forever,
    )

  /** Looks and renews, for ever; apart, since renewing waits where the database does. */
  const watching = Effect.all([eachLook(look), eachLook(renewing)], { concurrency: "unbounded", discard: true })

  /**
   * Claims whose lease is over, unless their holders may still have results of them. The read is made even while its
   * answer is not used: only a read shows that the database is still away, and the wait counts from the last failed one.
   */
  const orphans = Effect.gen(function* () {
    const asked = yield* Clock.currentTimeMillis
    const read = yield* Effect.exit(expired(sql, expiredBatch))
    const now = yield* Clock.currentTimeMillis
    if (Exit.isFailure(read) || now - asked > lease / 3) freesFrom = now + 1.5 * lease
    const found = yield* read
    return now < freesFrom || (unsettled.firstEnd() ?? Infinity) < now ? [] : found
  })

  // All of them: a process that was killed under load leaves thousands, and a batch every 5 s would take minutes.
  const free = Effect.gen(function* () {
    let freed = 0
    let found = expiredBatch
    while (found === expiredBatch) {
      const batch = yield* orphans
      found = batch.length
      if (found > 0) freed += yield* settleAll(batch)
    }
    return freed
  })

  return { add, changed, free, settling, size: () => unsettled.size, watching }
}
