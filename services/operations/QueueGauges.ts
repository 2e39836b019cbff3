/**
 * Gauges of the program's queues (docs/metrics.md), read at a scrape. Each statement reads a bounded number of
 * waiting rows by their index, and is cancelled by the server after half a second.
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect, Metric, Semaphore } from "effect"
import { Database } from "../platform/database/Database.ts"
import { gaugedAtScrape, type Reading } from "../platform/observability/ScrapedGauges.ts"
import { announcedAgainMillis } from "../webhooks/Deliveries.ts"
import { countOf, most, waiting } from "./QueueCounts.ts"

/** Deliveries as a whole, the outbox's age, and the queues that Queues.ts counts. */
export type GaugedQueue = "deliveries" | "outbox" | keyof typeof waiting

const gauge = (name: string, description: string) => Metric.gauge(`bailiwick_${name}`, { description })
const depths = gauge("queue_depth", "Rows of a queue that wait or are under way, 100,000 of each at most")
const failing = gauge("queue_failing", "Rows of a queue that failed before and are tried again")
const ages = gauge("queue_oldest_due_seconds", "For how long the oldest row of a queue has been due, 0 where none is")
const outboxAge = gauge("outbox_age_seconds", "Age of the oldest message that is not published, 0 where none is")

/** Maximum number of webhooks, the longest due first, among which the oldest due delivery is sought. */
const mostWebhooks = 10_000
const statementMillis = 500

const secondsSince = (since: Date | null, now: Date) =>
  since === null ? 0 : Math.max(0, now.getTime() - since.getTime()) / 1_000

interface Counted {
  readonly depth: number
  readonly failing: number
  readonly oldest: Date | null
}

const readingsOf = (queue: string, { depth, failing: failed, oldest }: Counted, now: Date): ReadonlyArray<Reading> => [
  [Metric.withAttributes(depths, { queue }), depth],
  [Metric.withAttributes(failing, { queue }), failed],
  [Metric.withAttributes(ages, { queue }), secondsSince(oldest, now)],
]

/**
 * Deliveries that are not claimed are found by webhook. An announcement puts a queue state's due time forward, so queue
 * states that will be due after one are looked at as well; those of paused webhooks are not.
 */
const countDeliveries = (sql: PgClient.PgClient, now: Date) =>
  sql<Counted>`
    select counted.depth, counted.failing, oldest.due_at as oldest from (
      select count(*)::int as depth, count(*) filter (where attempt > 1)::int as failing
      from (select attempt from delivery_queue limit ${most}) q
    ) counted, (
      select min(first.due_at) as due_at from (
        select webhook_id from webhook_lanes
        where not paused and next_due_at is not null and next_due_at <= ${new Date(
    now.getTime() + announcedAgainMillis,
  )}
        order by next_due_at limit ${mostWebhooks}
      ) l cross join lateral (
        select q.due_at from delivery_queue q
        where q.webhook_id = l.webhook_id and q.claim is null and q.due_at <= ${now}
        order by q.due_at limit 1
      ) first
    ) oldest`

const ageOfOutbox = (sql: PgClient.PgClient) =>
  sql<{ readonly since: Date | null }>`
    select min(created_at) as since from (
      (select created_at from outbox where published_at is null and aggregate_id is null limit ${most})
      union all
      (select created_at from outbox where published_at is null and aggregate_id is not null limit ${most})
    ) q`

const read = Effect.fnUntraced(function* (sql: PgClient.PgClient, queue: GaugedQueue) {
  const now = new Date(yield* Clock.currentTimeMillis)
  if (queue === "outbox") {
    const [row] = yield* ageOfOutbox(sql)
    return [[outboxAge, secondsSince(row!.since, now)]] satisfies ReadonlyArray<Reading>
  }
  const [row] = queue === "deliveries" ? yield* countDeliveries(sql, now) : yield* countOf(sql, queue, now)
  return readingsOf(queue, row!, now)
})

/** Gauges these queues until the scope ends, with two connections at most. */
export const gaugedQueues = Effect.fnUntraced(function* (queues: ReadonlyArray<GaugedQueue>) {
  const { sql } = yield* Database
  const two = Semaphore.makeUnsafe(2)
  for (const queue of queues) {
    yield* sql`select set_config('statement_timeout', ${`${statementMillis}ms`}, true)`.pipe(
      Effect.andThen(read(sql, queue)),
      sql.withTransaction,
      two.withPermits(1),
      (reading) => gaugedAtScrape(queue, reading),
    )
  }
})
