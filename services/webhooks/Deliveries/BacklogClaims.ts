/**
 * Claims due deliveries: announced ones by their ids, and those of backlogged webhooks as soon as there are free slots.
 * In small batches, because a claim of thousands delays all first tries (see `AdaptiveBatchSize`).
 *
 * The state here is only in memory: if a process forgets a backlog, the scan of webhook queues announces it again half
 * a minute later. Claiming and handing over to the Sender is one uninterruptible step, bounded by the statements'
 * timeouts; after a stop the Sender gives the claims back.
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect, Latch } from "effect"
import type { SqlError } from "effect/sql"
import type { AccountId, WebhookId } from "../../../schemas/BrandedIds.ts"
import { faultPoint } from "../../platform/Failpoints.ts"
import type { Endpoints } from "../Endpoints.ts"
import type { Sender } from "../Sender.ts"
import type { Result } from "../Sender/Task.ts"
import { type Announcement, claim, claimDue } from "./DeliveryClaims.ts"
import { AdaptiveBatchSize, restMillis } from "./AdaptiveBatchSize.ts"

type Reserve = (webhookId: WebhookId, accountId: AccountId, wanted: number) => number

export interface BacklogClaimsOptions {
  readonly sql: PgClient.PgClient
  readonly endpoints: Endpoints["Service"]
  /** The lease of a claim, in milliseconds. */
  readonly lease: number
  readonly sender: Sender["Service"]
  /** Gives back claims of which nothing was sent. */
  readonly giveBack: (claims: ReadonlyArray<Result["task"]>) => void
  /** The size of a full announcement: one this long may have left deliveries out. */
  readonly announcementSize: number
}

export const makeBacklogClaims = (
  { announcementSize, sender, ...claimer }: BacklogClaimsOptions,
  clock: Clock.Clock,
) => {
  const { slots } = sender
  const pace = new AdaptiveBatchSize()
  const claimable = Latch.makeUnsafe(false)
  const millis = () => clock.currentTimeMillisUnsafe()

  /** Wakes the loop if a webhook has a backlog and may have free slots. */
  const wake = () => {
    if (slots.mayTopUp) claimable.openUnsafe()
  }

  /** Runs an effect that reserves slots; if it fails, gives them back, since nothing was handed to the Sender. */
  const reserving = <A, E>(run: (reserve: Reserve) => Effect.Effect<A, E>) =>
    Effect.suspend(() => {
      const reserved: Array<readonly [WebhookId, number]> = []
      return run((webhookId, accountId, wanted) => {
        const got = sender.stopped() ? 0 : slots.reserve(webhookId, accountId, wanted)
        if (got > 0) reserved.push([webhookId, got])
        return got
      }).pipe(Effect.onError(() =>
        Effect.sync(() => {
          for (const [webhookId, count] of reserved) slots.drop(webhookId, count)
        })
      ))
    })

  // Claims one batch of announced deliveries by id; the webhooks of the others are backlogged and topped up later.
  const dispatch = Effect.fn("Deliveries.dispatch")(function* (
    announcements: ReadonlyArray<Announcement>,
  ): Effect.fn.Return<void, SqlError.SqlError> {
    yield* faultPoint("dispatch.taken")
    const tasks = yield* reserving(Effect.fnUntraced(function* (reserve) {
      // A delivery may be announced twice, after a long wait in the stream or in a backlog: it takes one slot.
      const seen = new Set<string>()
      let left = pace.batchSize(millis())
      const wanted = announcements.map(({ webhookId, accountId, deliveryIds }) => {
        const fresh = deliveryIds.filter((id) => !seen.has(id))
        const ids = fresh.slice(0, reserve(webhookId, accountId, Math.min(left, fresh.length)))
        for (const id of ids) seen.add(id)
        left -= ids.length
        if (ids.length < fresh.length || deliveryIds.length >= announcementSize) {
          slots.markBacklogged(webhookId, accountId)
        }
        return { webhookId, ids }
      })
      const claimed = yield* claim(claimer, wanted.flatMap((w) => w.ids))
      const ids = new Set(claimed.map((task) => task.deliveryId))
      for (const { webhookId, ids: asked } of wanted) {
        slots.drop(webhookId, asked.filter((id) => !ids.has(id)).length)
      }
      return claimed
    }))
    yield* faultPoint("dispatch.claimed")
    sender.send(tasks)
    wake()
  }, Effect.uninterruptible)

  /** Claims one batch for webhooks with a backlog and free slots; returns whether it claimed anything. */
  const claimBatch = Effect.gen(function* () {
    const reserved = sender.stopped() ? [] : slots.topUp(pace.batchSize(millis()))
    if (reserved.length === 0) return false
    const tasks = yield* claimDue(claimer, reserved).pipe(Effect.onError(() =>
      Effect.sync(() => {
        for (const { accountId, count, webhookId } of reserved) {
          slots.drop(webhookId, count)
          slots.markBacklogged(webhookId, accountId)
        }
      })
    ))
    const claimed = Map.groupBy(tasks, (task) => task.webhookId)
    for (const { accountId, count, webhookId } of reserved) {
      const got = claimed.get(webhookId)?.length ?? 0
      slots.drop(webhookId, count - got)
      if (got === count) slots.markBacklogged(webhookId, accountId)
    }
    yield* faultPoint("dispatch.claimed")
    sender.send(tasks)
    return true
  }).pipe(Effect.uninterruptible)

  const rest = Effect.gen(function* () {
    if (!pace.rests(millis())) return yield* Effect.yieldNow
    const from = yield* Clock.currentTimeNanos
    yield* Effect.sleep(restMillis)
    pace.rested(Number((yield* Clock.currentTimeNanos) - from) / 1e6 - restMillis)
  })

  const claiming = (mayClaim: Effect.Effect<boolean>): Effect.Effect<never> =>
    Effect.gen(function* () {
      yield* claimable.await
      if (!(yield* mayClaim)) return yield* Effect.sleep("1 second")
      claimable.closeUnsafe()
      while (yield* claimBatch) yield* rest
    }).pipe(
      Effect.catchCause((cause) =>
        Effect.logWarning("claiming backlogged deliveries failed, trying again", cause).pipe(
          Effect.andThen(Effect.sleep("1 second")),
          Effect.andThen(Effect.sync(wake)),
        )
      ),
      Effect.forever,
    )

  /** Notes that first tries were accepted. */
  const firstTries = (count: number) => pace.firstTries(millis(), count)

  return { dispatch, claiming, firstTries, wake, reserving }
}
