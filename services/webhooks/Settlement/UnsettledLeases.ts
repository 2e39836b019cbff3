/** Renews the leases of unsettled results, and frees the expired claims of other processes. */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect, Exit } from "effect"
import type { SqlError } from "effect/sql"
import { expired, renew } from "../Deliveries/DeliveryClaims.ts"
import { gaugeUnsettled } from "../Deliveries/Metrics.ts"
import type { Result } from "../Sender/Task.ts"
import type { SettlementQueue } from "./SettlementQueue.ts"

const expiredBatch = 500
const warnEveryMillis = 60_000

interface LeaseOptions {
  readonly sql: PgClient.PgClient
  readonly queue: SettlementQueue
  /** The lease of a claim, in milliseconds. */
  readonly lease: number
}

/**
 * Checks the results and renews their leases, in two loops, since a renewal may wait for the database; does not end.
 */
export const watching = ({ lease, queue, sql }: LeaseOptions, clock: Clock.Clock): Effect.Effect<void> => {
  const { age, some, unsettled, updateRoom } = queue
  const millis = () => clock.currentTimeMillisUnsafe()
  let warnedAt = -Infinity

  const checking = Effect.gen(function* () {
    updateRoom()
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

  /** Repeats an effect while there are results, and once more after the last one. */
  const whileUnsettled = (check: Effect.Effect<void, SqlError.SqlError>) =>
    some.await.pipe(
      Effect.andThen(Effect.sleep(Math.min(1_000, lease / 12))),
      Effect.andThen(check),
      Effect.catchCause((cause) => Effect.logDebug("checking unsettled results failed", cause)),
      Effect.forever,
    )

  return Effect.all([whileUnsettled(checking), whileUnsettled(renewing)], { concurrency: "unbounded", discard: true })
}

/**
 * Settles all claims whose lease has ended: a process that was killed under load leaves thousands, and one batch per 5
 * s would take minutes. Returns how many `settle` settled.
 */
export const freeing = (
  { lease, queue: { unsettled }, sql }: LeaseOptions,
  settle: (batch: ReadonlyArray<Result>) => Effect.Effect<ReadonlyArray<unknown>, SqlError.SqlError>,
): Effect.Effect<number, SqlError.SqlError> => {
  let freesFrom = -Infinity

  /**
   * Claims whose lease has ended, unless their processes may still have results of them. They are read even while they
   * may not be freed: only a read shows that the database is still away, and the wait counts from the last failed read.
   */
  const orphans = Effect.gen(function* () {
    const asked = yield* Clock.currentTimeMillis
    const read = yield* Effect.exit(expired(sql, expiredBatch))
    const now = yield* Clock.currentTimeMillis
    if (Exit.isFailure(read) || now - asked > lease / 3) freesFrom = now + 1.5 * lease
    const found = yield* read
    return now < freesFrom || (unsettled.firstEnd() ?? Infinity) < now ? [] : found
  })

  return Effect.gen(function* () {
    let freed = 0
    let found = expiredBatch
    while (found === expiredBatch) {
      const batch = yield* orphans
      found = batch.length
      if (found > 0) freed += (yield* settle(batch)).length
    }
    return freed
  })
}
