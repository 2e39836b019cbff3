/** The long jobs of webhooks: cancelling the waiting deliveries of a deleted webhook, and bulk replays. */
import { Clock, Context, Effect, Layer } from "effect"
import type { DeliveryId } from "../../schemas/BrandedIds.ts"
import { Database } from "../platform/database/Database.ts"
import { faultPoint } from "../platform/Failpoints.ts"
import { type JobWorker, worker } from "../platform/messaging/Jobs.ts"
import { arrayOf } from "./Deliveries/PgArray.ts"
import { dayOf } from "./Deliveries/UuidDay.ts"
import { Replays } from "./Replays.ts"
import { missedEvents } from "./MissedEvents.ts"
import {
  type CancelArgs,
  cancelJob,
  type ReplayArgs,
  replayJob,
  type ReplayMissedArgs,
  replayMissedJob,
  replayMissedTypeJob,
  replayTypeJob,
} from "./WebhookJobKinds.ts"

const chunk = 1_000

/**
 * Longer than any transaction that read the webhook before it was deleted; after this time nothing is queued for it.
 */
const lateMillis = 15_000

export class WebhookJobs extends Context.Service<WebhookJobs, {
  readonly workers: ReadonlyArray<JobWorker>
}>()("bailiwick/services/webhooks/WebhookJobs") {
  static readonly layer = Layer.effect(
    WebhookJobs,
    Effect.gen(function* () {
      const { sql } = yield* Database
      const replays = yield* Replays
      const missed = yield* missedEvents

      // A delivery in flight ends by itself: a success is recorded; a failure returns to the queue and is cancelled
      // then.
      const cancel = Effect.fnUntraced(function* ({ deleted_at, webhook_id }: CancelArgs) {
        // Locked by a separate statement; Deliveries/RowLocks.ts has the reason.
        const locked = yield* sql<{ delivery_id: DeliveryId }>`
          select delivery_id::text as delivery_id from delivery_queue
          where webhook_id = ${webhook_id}::uuid and claim is null order by due_at limit ${chunk} for update skip locked`
        const [row] = yield* sql<{ n: number; left: boolean }>`
          with waiting as materialized (
            select id as delivery_id from unnest(${arrayOf(locked.map((q) => q.delivery_id))}::uuid[]) w(id)
          ), gone as (
            delete from delivery_queue q using waiting where q.delivery_id = waiting.delivery_id
            returning q.delivery_id as id, case when q.attempt = 1 then 'pending' else 'retrying' end as was
          ), cancelled as (
            update deliveries d set status = 'cancelled', next_retry_at = null from gone where d.id = gone.id
          ), counted as (
            insert into delivery_counts (webhook_id, day, status, n)
            select ${webhook_id}::uuid, day, status, sum(n) from (
              select ${dayOf(sql, "id")} as day, was as status, -1 as n from gone
              union all select ${dayOf(sql, "id")}, 'cancelled', 1 from gone
            ) c group by day, status
          )
          select count(*)::int as n, exists (
            select from delivery_queue where webhook_id = ${webhook_id}::uuid
              and delivery_id not in (select delivery_id from waiting)
          ) as left from gone`
        const { left, n } = row!
        const settledAt = Date.parse(deleted_at) + lateMillis
        const wait = settledAt - (yield* Clock.currentTimeMillis)
        if (n === chunk) return { done: n, next: { cursor: null } }
        if (left) return { done: n, next: { cursor: null, afterMillis: 2_000 } }
        return { done: n, next: wait > 0 ? { cursor: null, afterMillis: wait } : null }
      })

      const replay = Effect.fnUntraced(function* (args: ReplayArgs, cursor: unknown) {
        const from = typeof cursor === "string" ? cursor : args.from
        const { ids, next } = yield* replays.ended(args, from, chunk)
        const done = yield* replays.again(args.webhook_id, ids)
        return { done, next: next === null ? null : { cursor: next } }
      })

      const replayMissed = Effect.fnUntraced(function* (args: ReplayMissedArgs, cursor: unknown) {
        const { event_type: eventType, from, to, webhook_id } = args
        const span = { from: typeof cursor === "string" ? cursor : from, to, eventType }
        const { ids, next } = yield* missed.next(webhook_id, span, chunk)
        const done = yield* missed.deliver(webhook_id, ids)
        yield* sql.afterCommit(faultPoint("missed.committed"))
        yield* faultPoint("missed.written")
        return { done, next: next === null ? null : { cursor: next } }
      })

      return WebhookJobs.of({
        workers: [
          worker(cancelJob, cancel),
          worker(replayJob, replay),
          worker(replayTypeJob, replay),
          worker(replayMissedJob, replayMissed),
          worker(replayMissedTypeJob, replayMissed),
        ],
      })
    }),
  )
}
