/** The leases of results that are not settled, and the claims of processes that are gone. */
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
  /** How long a claim holds, in milliseconds. */
  readonly lease: number
}

/** Looks at the results and renews their leases, for ever; apart, since renewing waits where the database does. */
export const watching = ({ lease, queue, sql }: LeaseOptions, clock: Clock.Clock): Effect.Effect<void> => {
  const { age, some, unsettled, weigh } = queue
  const millis = () => clock.currentTimeMillisUnsafe()
  let warnedAt = -Infinity

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

  return Effect.all([eachLook(look), eachLook(renewing)], { concurrency: "unbounded", discard: true })
}

/**
 * Settles claims whose lease is over, all there are: a process that was killed under load leaves thousands, and a batch
 * every 5 s would take minutes. Gives how many `settle` did.
 */
export const freeing = (
  { lease, queue: { unsettled }, sql }: LeaseOptions,
  settle: (batch: ReadonlyArray<Result>) => Effect.Effect<ReadonlyArray<unknown>, SqlError.SqlError>,
): Effect.Effect<number, SqlError.SqlError> => {
  let freesFrom = -Infinity

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
