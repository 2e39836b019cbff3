/**
 * Commands on one delivery that waits for an attempt: to make it now, or never.
 *
 * The queue row decides: it is locked, and a claim on it says that a process may be sending this delivery, or has sent it
 * and not settled it yet. Such a delivery is refused, so an attempt that was made is always recorded, and a cancelled
 * delivery is never sent. Killed before the commit, nothing has changed; later, the delivery is due, or cancelled.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { AccountId, DeliveryId, WebhookId } from "../../schemas/BrandedIds.ts"
import { RateLimited } from "../../schemas/problems/HttpProblems.ts"
import { DeliveryNotFound, DeliveryNotWaiting } from "../../schemas/problems/WebhookProblems.ts"
import { isUuid } from "../../schemas/Wire.ts"
import { Database } from "../platform/database/Database.ts"
import type { InTransaction } from "../platform/database/UnitOfWork.ts"
import { WakeUps } from "../platform/messaging/WakeUps.ts"
import { Audit } from "../platform/observability/Audit.ts"
import { RateLimits } from "../platform/security/RateLimits.ts"
import { dueTopic } from "./Deliveries/DeliveryClaims.ts"
import { makeQueueDue } from "./Deliveries/RowLocks.ts"
import { dayOf } from "./Deliveries/UuidDay.ts"

/** A delivery as its command answers it. */
export interface Changed {
  readonly id: DeliveryId
  readonly status: "pending" | "retrying" | "cancelled"
}

/** The command itself, for the transaction of a receipt. */
type Command = Effect.Effect<Changed, DeliveryNotWaiting | SqlError.SqlError, InTransaction>

/** Finds the delivery of the account, counts the request, and gives the command. */
type Asking = (
  accountId: AccountId,
  deliveryId: DeliveryId,
) => Effect.Effect<Command, DeliveryNotFound | RateLimited | SqlError.SqlError>

/** Commands a minute and account. */
const perMinute = 60

export class WaitingDeliveries extends Context.Service<WaitingDeliveries, {
  /** Makes the next attempt due now, also where its time has not come. The attempt counts as it would have then. */
  readonly retryNow: Asking
  /** Ends the delivery as `cancelled`; no further attempt is made unless it is replayed. */
  readonly cancel: Asking
}>()("bailiwick/services/webhooks/WaitingDeliveries") {
  static readonly layer = Layer.suspend(() => Layer.effect(WaitingDeliveries, make))
}

interface Queued {
  readonly webhook_id: WebhookId
  readonly claimed: boolean
  readonly status: "pending" | "retrying"
}

const make = Effect.gen(function* () {
  const { reads, sql } = yield* Database
  const audit = yield* Audit
  const limits = yield* RateLimits
  const wakeUps = yield* WakeUps

  /** The delivery's id as its row has it. */
  const admit = Effect.fnUntraced(function* (accountId: AccountId, deliveryId: DeliveryId) {
    const [row] = isUuid(deliveryId)
      ? yield* reads<{ id: DeliveryId }>`
        select id::text as id from deliveries where id = ${deliveryId}::uuid and account_id = ${accountId}::uuid
        union all
        select delivery_id::text from dead_letters
        where delivery_id = ${deliveryId}::uuid and account_id = ${accountId}::uuid
        limit 1`
      : []
    if (row === undefined) return yield* new DeliveryNotFound()
    const key = `webhooks.waiting:${accountId}`
    const taken = yield* limits.take({ key, limit: perMinute, windowMillis: 60_000 })
    if (!taken.allowed) return yield* new RateLimited({ retry_after: taken.retryAfterSeconds })
    return row.id
  })

  /** Locks the queue row; fails where there is none, or a process holds its claim. */
  const lock = Effect.fnUntraced(function* (id: DeliveryId) {
    const [row] = yield* sql<Queued>`
      select webhook_id::text as webhook_id, claim is not null as claimed,
        case when attempt = 1 then 'pending' else 'retrying' end as status
      from delivery_queue where delivery_id = ${id}::uuid for update`
    if (row === undefined) return yield* new DeliveryNotWaiting({ detail: "It has ended." })
    if (row.claimed) return yield* new DeliveryNotWaiting({ detail: "An attempt is under way." })
    return row
  })

  const record = (accountId: AccountId, id: DeliveryId, action: "delivery.retried" | "delivery.cancelled") =>
    audit.append({ action, actor: `account:${accountId}`, subject: `delivery:${id}`, outcome: "done" })

  const retry = Effect.fn("WaitingDeliveries.retryNow")(function* (accountId: AccountId, id: DeliveryId) {
    // Before the queue row, in the order of every change of a webhook.
    const [hook] = yield* sql<{ is_active: boolean }>`
      select w.is_active from webhooks w
      where w.id = (select webhook_id from deliveries where id = ${id}::uuid) and w.deleted_at is null for share of w`
    if (hook === undefined) return yield* new DeliveryNotWaiting({ detail: "Its webhook was deleted." })
    if (!hook.is_active) return yield* new DeliveryNotWaiting({ detail: "Its webhook is paused." })
    const { status, webhook_id } = yield* lock(id)
    const now = new Date(yield* Clock.currentTimeMillis)
    yield* sql`update delivery_queue set due_at = least(due_at, ${now}) where delivery_id = ${id}::uuid`
    // Null before the first attempt.
    yield* sql`update deliveries set next_retry_at = ${now} where id = ${id}::uuid and next_retry_at > ${now}`
    yield* makeQueueDue(sql, webhook_id, now)
    yield* record(accountId, id, "delivery.retried")
    yield* sql.afterCommit(wakeUps.notify(dueTopic))
    return { id, status }
  })

  const cancelled = Effect.fn("WaitingDeliveries.cancel")(function* (accountId: AccountId, id: DeliveryId) {
    const { status, webhook_id } = yield* lock(id)
    yield* sql`delete from delivery_queue where delivery_id = ${id}::uuid`
    yield* sql`update deliveries set status = 'cancelled', next_retry_at = null where id = ${id}::uuid`
    yield* sql`
      insert into delivery_counts (webhook_id, day, status, n)
      select ${webhook_id}::uuid, ${dayOf(sql, "id")}, s.status, s.n
      from (values (${id}::uuid)) d(id) cross join (values (${status}, -1), ('cancelled', 1)) s(status, n)`
    yield* record(accountId, id, "delivery.cancelled")
    return { id, status: "cancelled" as const }
  })

  return WaitingDeliveries.of({
    retryNow: (accountId, deliveryId) =>
      Effect.map(admit(accountId, deliveryId), (id): Command => retry(accountId, id)),
    cancel: (accountId, deliveryId) =>
      Effect.map(admit(accountId, deliveryId), (id): Command => cancelled(accountId, id)),
  })
})
