/**
 * The claims of deliveries, and the announcements of due ones. A process may POST only deliveries that it has claimed
 * itself; announcements are hints.
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { Statement } from "effect/sql"
import type { AccountId, DeliveryId, WebhookId } from "../../../schemas/BrandedIds.ts"
import type { Endpoints } from "../Endpoints.ts"
import type { Reservation } from "../Sender/Backlog.ts"
import type { Result, Task } from "../Sender/Task.ts"
import { maxInterruptions } from "../RetrySchedule.ts"
import { arrayOf } from "./PgArray.ts"

/** The topic of the wake-up signal that deliveries are due. */
export const dueTopic = "deliveries"

/** The longest time between two scans for due retries; for retries that are due sooner a wake-up signal is sent. */
export const scanEveryMillis = 1_000

/** Due deliveries of one webhook, which a dispatcher may try to claim. */
export interface Announcement {
  readonly webhookId: WebhookId
  readonly accountId: AccountId
  readonly deliveryIds: ReadonlyArray<DeliveryId>
}

/**
 * Splits announcements into those of at most `size` deliveries, with accounts in turns, so that no account's backlog
 * goes first.
 */
export const inTurns = (due: ReadonlyArray<Announcement>, size: number): ReadonlyArray<Announcement> => {
  const lines = new Map<string, Array<Announcement>>()
  for (const { webhookId, accountId, deliveryIds } of due) {
    const line = lines.get(accountId) ?? []
    lines.set(accountId, line)
    for (let i = 0; i < deliveryIds.length; i += size) {
      line.push({ webhookId, accountId, deliveryIds: deliveryIds.slice(i, i + size) })
    }
  }
  const turns: Array<Announcement> = []
  for (let round = 0; lines.size > 0; round++) {
    for (const [accountId, line] of lines) {
      if (round < line.length) turns.push(line[round]!)
      else lines.delete(accountId)
    }
  }
  return turns
}

interface Claimed {
  readonly delivery_id: DeliveryId
  readonly webhook_id: WebhookId
  readonly account_id: AccountId
  readonly event: string
  readonly body: string
  readonly version: number
  readonly cycle: number
  readonly attempt: number
  readonly claim: bigint
}

interface Claimer {
  readonly sql: PgClient.PgClient
  readonly endpoints: Endpoints["Service"]
  readonly lease: number
  /**
   * Gives back claims of which nothing was sent. If their leases ended instead, the fifth such end would make a dead
   * letter.
   */
  readonly giveBack: (claims: ReadonlyArray<Result["task"]>) => void
}

const claimOf =
  (leaseUntil: number) => ({ attempt, claim, cycle, delivery_id, webhook_id }: Claimed): Result["task"] => ({
    deliveryId: delivery_id,
    webhookId: webhook_id,
    cycle,
    attempt,
    claim,
    leaseUntil,
  })

/**
 * Claims the queue rows that `free` locks, a SELECT of `delivery_id, webhook_id`, if their webhook is active. The
 * events are read with `offset 0`, which forces a lookup by index: the planner counts the cost of a lookup once per
 * day, and would read all days of a small table instead.
 */
const claimRows = Effect.fnUntraced(function* (
  { sql, endpoints, lease, giveBack }: Claimer,
  free: (now: Date) => Statement.Fragment,
): Effect.fn.Return<ReadonlyArray<Task>, SqlError.SqlError> {
  const now = yield* Clock.currentTimeMillis
  const leaseUntil = now + lease
  const resultTask = claimOf(leaseUntil)
  const rows = yield* sql<Claimed>`
    with free as materialized (${free(new Date(now))}), due as materialized (
      select f.delivery_id, w.version
      from free f join webhooks w on w.id = f.webhook_id and w.is_active and w.deleted_at is null
    ), new_claim as materialized (
      select nextval('delivery_claims') as claim where exists (select from due)
    ), claimed as (
      -- By key, row by row: the planner does not know how many rows a limit leaves, and read the whole backlog for 200.
      update delivery_queue q set claim = new_claim.claim, lease_until = ${new Date(leaseUntil)}
      from unnest(array(select delivery_id from due)) d(id), new_claim where q.delivery_id = d.id
      returning q.delivery_id, q.webhook_id, q.account_id, q.event_id, q.cycle, q.attempt, q.claim
    )
    select c.delivery_id, c.webhook_id, c.account_id, e.event, e.body, due.version, c.cycle, c.attempt, c.claim
    from claimed c join due on due.delivery_id = c.delivery_id
    cross join lateral (select event, body from events where id = c.event_id offset 0) e`
  const found = yield* endpoints.get(rows.map((row) => ({ webhookId: row.webhook_id, version: row.version }))).pipe(
    Effect.tapError(() => Effect.sync(() => giveBack(rows.map(resultTask)))),
  )
  // The webhook was deleted meanwhile: its job cancels deliveries that are not claimed.
  giveBack(rows.filter((row) => !found.has(row.webhook_id)).map(resultTask))
  return rows.flatMap((row): ReadonlyArray<Task> => {
    const endpoint = found.get(row.webhook_id)
    return endpoint === undefined ? [] : [{
      ...resultTask(row),
      accountId: row.account_id,
      eventType: row.event,
      body: row.body,
      endpoint,
      host: endpoint.host,
      rate: endpoint.rateLimit,
      later: row.attempt > 1 || row.cycle > 1,
    }]
  })
})

/** Claims those of these deliveries that are due, not claimed, and of an active webhook. */
export const claim = (claimer: Claimer, deliveryIds: ReadonlyArray<DeliveryId>) =>
  deliveryIds.length === 0 ? Effect.succeed<ReadonlyArray<Task>>([]) : claimRows(claimer, (now) =>
    // By key, row by row, whatever the planner expects: a plan of `= any(ids)` from a time with a small queue filtered
    // the whole queue by every id, which took seconds per claim.
    claimer.sql`
      select q.delivery_id, q.webhook_id
      from (select id from unnest(${arrayOf(deliveryIds)}::uuid[]) wanted(id) order by id) wanted
      cross join lateral (
        select delivery_id, webhook_id from delivery_queue
        where delivery_id = wanted.id and claim is null and due_at <= ${now}
        for update skip locked
      ) q`)

/** Claims due deliveries of these webhooks if they are active, up to `count` of each, the longest due first. */
export const claimDue = (claimer: Claimer, reserved: ReadonlyArray<Reservation>) =>
  reserved.length === 0 ? Effect.succeed<ReadonlyArray<Task>>([]) : claimRows(claimer, (now) =>
    claimer.sql`
      select q.delivery_id, q.webhook_id
      from unnest(${arrayOf(reserved.map((one) => one.webhookId))}::uuid[],
        ${arrayOf(reserved.map((one) => one.count))}::int[]) wanted(webhook_id, n)
      cross join lateral (
        select delivery_id, webhook_id from delivery_queue
        where webhook_id = wanted.webhook_id and claim is null and due_at <= ${now}
        order by due_at limit wanted.n for update skip locked
      ) q`)

/** A claim whose lease is renewed. */
type Renewed = Pick<Task, "deliveryId" | "claim">

/**
 * Renews the leases of these claims until `leaseUntil`, as far as they are still the rows'; returns their deliveries. A
 * locked row is being settled or claimed again at this moment, and is left out.
 */
export const renew = (sql: PgClient.PgClient, claims: ReadonlyArray<Renewed>, leaseUntil: Date) =>
  sql<{ id: DeliveryId }>`
    with locked as materialized (
      select q.delivery_id from unnest(${arrayOf(claims.map((c) => c.deliveryId))}::uuid[],
        ${arrayOf(claims.map((c) => c.claim))}::bigint[]) wanted(id, claim)
      -- By key alone, as in lockClaims.
      cross join lateral (
        select delivery_id, claim from delivery_queue where delivery_id = wanted.id for update skip locked
      ) q
      where q.claim = wanted.claim
    )
    update delivery_queue q set lease_until = ${leaseUntil} from locked where q.delivery_id = locked.delivery_id
    returning q.delivery_id as id`

/** Locks the queue states that are due, except those that another scan has locked. */
const lockDueQueues = (sql: PgClient.PgClient, now: Date, limit: number) =>
  sql<{ webhook_id: WebhookId }>`
    select l.webhook_id from webhook_lanes l
    where not l.paused and l.next_due_at <= ${now}
    order by l.next_due_at limit ${limit} for update skip locked`

/**
 * Announces due deliveries: of at most `queues` webhooks, `depth` deliveries each. An announced queue is due again
 * after `again` milliseconds, because an announcement may be lost.
 *
 * A separate statement locks the queue states (`webhook_lanes`): the snapshot of the second statement then has all rows
 * of writers that held the lock before, and later writers wait for the lock and set the due time back.
 */
export const announceDue = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  options: {
    readonly queues: number
    readonly depth: number
    readonly again: number
  },
): Effect.fn.Return<ReadonlyArray<Announcement>, SqlError.SqlError> {
  const millis = yield* Clock.currentTimeMillis
  const now = new Date(millis)
  const rows = yield* Effect.gen(function* () {
    const queues = yield* lockDueQueues(sql, now, options.queues)
    if (queues.length === 0) return []
    return yield* sql<{ webhook_id: WebhookId; account_id: AccountId; ids: ReadonlyArray<DeliveryId> | null }>`
      with found as materialized (
        select l.webhook_id,
          array(
            select q.delivery_id from delivery_queue q
            where q.webhook_id = l.webhook_id and q.claim is null and q.due_at <= ${now}
            order by q.due_at limit ${options.depth}
          ) as ids,
          (
            select min(q.due_at) from delivery_queue q
            where q.webhook_id = l.webhook_id and q.claim is null and q.due_at > ${now}
          ) as later
        from unnest(${queues.map((queue) => queue.webhook_id)}::uuid[]) l(webhook_id)
      )
      update webhook_lanes l
      set next_due_at = case when cardinality(f.ids) = 0 then f.later
        else least(f.later, ${new Date(millis + options.again)}) end
      from found f where l.webhook_id = f.webhook_id
      returning l.webhook_id, l.account_id, f.ids`
  }).pipe(sql.withTransaction)
  return rows.flatMap(({ webhook_id, account_id, ids }) =>
    ids === null || ids.length === 0 ? [] : [{ webhookId: webhook_id, accountId: account_id, deliveryIds: ids }]
  )
})

interface Expired {
  readonly delivery_id: DeliveryId
  readonly webhook_id: WebhookId
  readonly cycle: number
  readonly attempt: number
  readonly claim: bigint
  readonly attempts_interrupted: number
  readonly lease_until: Date
}

/** Claims whose lease has ended, as interrupted results to settle; changes nothing. */
export const expired = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  limit: number,
): Effect.fn.Return<ReadonlyArray<Result>, SqlError.SqlError> {
  const now = yield* Clock.currentTimeMillis
  const rows = yield* sql<Expired>`
    select delivery_id, webhook_id, cycle, attempt, claim, attempts_interrupted, lease_until from delivery_queue
    where claim is not null and lease_until < ${new Date(now)} order by lease_until limit ${limit}`
  return rows.map((row): Result => ({
    task: {
      deliveryId: row.delivery_id,
      webhookId: row.webhook_id,
      cycle: row.cycle,
      attempt: row.attempt,
      claim: row.claim,
      leaseUntil: row.lease_until.getTime(),
    },
    ending: "interrupted",
    fatal: row.attempts_interrupted + 1 >= maxInterruptions,
    startedAt: row.lease_until.getTime(),
    durationMs: 0,
    status: null,
    error: "interrupted",
    body: null,
    url: null,
  }))
})
