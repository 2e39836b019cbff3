/**
 * The program's queues and the webhooks with the most deliveries waiting, for operators. Each statement reads the rows
 * that wait, each once and only so many, never the rows that are done.
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { AccountId, PersonId, WebhookId } from "../../schemas/BrandedIds.ts"
import type { QueueName, Queues as QueueReport, WebhookBacklogs } from "../../schemas/identity/QueueView.ts"
import type { PausedBy } from "../../schemas/mail/Webhook.ts"
import type { RoleRequired } from "../../schemas/problems/IdentityProblems.ts"
import { Database } from "../platform/database/Database.ts"
import { mustOperate } from "./OperatorRole.ts"
import { countOf, type CountRow, counts, most, waiting } from "./QueueCounts.ts"
import { type QueueRates, queueRates } from "./QueueRates.ts"

/** Maximum number of waiting deliveries that are counted. */
const mostDeliveries = 1_000_000
/** Maximum number of webhooks that are listed. */
const listed = 20
/** Maximum number of webhooks that are listed beside them, since an operator paused them. */
const listedPaused = 100

interface BacklogRow {
  readonly webhook_id: WebhookId
  readonly account_id: AccountId
  readonly url: string | null
  readonly paused: boolean
  readonly paused_by: PausedBy | null
  readonly depth: number
  readonly retries: number
  readonly leased: number
  readonly oldest: Date | null
  readonly counted: number
}

/** First tries and retries, by one look at each delivery that waits. */
const countDeliveries = (sql: PgClient.PgClient, now: Date) =>
  sql<CountRow>`
    select case when first then 'first_tries' else 'retries' end as queue, ${counts(sql, now)}
    from (select due_at as at, claim, attempt = 1 as first, attempt > 1 as failing from delivery_queue
      limit ${mostDeliveries}) q
    group by first`

const backlogs = (sql: PgClient.PgClient) =>
  sql<BacklogRow>`
    with counted as materialized (
      -- Each waiting delivery once, whatever the number of webhooks.
      select webhook_id, count(*)::int as depth, count(*) filter (where attempt > 1)::int as retries,
        count(claim)::int as leased, min(due_at) as oldest
      from (select webhook_id, attempt, claim, due_at from delivery_queue limit ${mostDeliveries}) q group by webhook_id
    )
    select w.id::text as webhook_id, w.account_id::text as account_id,
      case when w.deleted_at is null then w.url end as url, coalesce(l.paused, false) as paused,
      case when not w.is_active and w.deleted_at is null then w.paused_by end as paused_by,
      coalesce(c.depth, 0) as depth, coalesce(c.retries, 0) as retries, coalesce(c.leased, 0) as leased, c.oldest,
      (select sum(depth) from counted)::int as counted
    from (
      (select webhook_id as id from counted order by depth desc, webhook_id limit ${listed})
      union
      -- For those whose queue is short or empty: only an operator can resume them.
      (select id from webhooks where paused_by = 'operator' and not is_active and deleted_at is null order by id limit ${listedPaused})
    ) shown
    join webhooks w on w.id = shown.id left join webhook_lanes l on l.webhook_id = w.id
    left join counted c on c.webhook_id = w.id
    order by coalesce(c.depth, 0) desc, w.id`

const viewOf = (rates: QueueRates) => ({ oldest, ...row }: CountRow) => {
  const capped = row.depth >= (row.queue === "first_tries" || row.queue === "retries" ? mostDeliveries : most)
  const per_minute = rates.get(row.queue) ?? null
  return { ...row, capped, oldest_due_at: oldest?.toISOString() ?? null, per_minute }
}

const none = (queue: QueueName): CountRow => ({ queue, depth: 0, due: 0, oldest: null, leased: 0, failing: 0 })

export class Queues extends Context.Service<Queues, {
  /** Every queue, in one order; RoleRequired unless the person is an active operator. */
  readonly read: (personId: PersonId) => Effect.Effect<QueueReport, RoleRequired | SqlError.SqlError>
  /** The 20 webhooks with the most deliveries that wait, the most first, and up to 100 that an operator paused. */
  readonly webhooks: (personId: PersonId) => Effect.Effect<WebhookBacklogs, RoleRequired | SqlError.SqlError>
  /** Both at once. Checks no role: the caller has checked that the person is an operator. */
  readonly observed: Effect.Effect<
    { readonly queues: QueueReport; readonly backlogs: WebhookBacklogs },
    SqlError.SqlError
  >
}>()("bailiwick/services/operations/Queues") {
  static readonly layer = Layer.effect(
    Queues,
    Effect.gen(function* () {
      const { sql } = yield* Database
      const operating = yield* mustOperate
      const rates = queueRates(sql)

      const counted = Effect.gen(function* () {
        const now = new Date(yield* Clock.currentTimeMillis)
        const names = Object.keys(waiting) as ReadonlyArray<keyof typeof waiting>
        const [deliveries, others] = yield* Effect.all([
          countDeliveries(sql, now),
          Effect.forEach(names, (name) => countOf(sql, name, now)),
        ], { concurrency: 2 })
        const tries = (["first_tries", "retries"] as const).map((name) =>
          deliveries.find(({ queue }) => queue === name) ?? none(name)
        )
        return {
          as_of: now.toISOString(),
          items: [...tries, ...others.flat()].map(viewOf(yield* rates)),
        } satisfies QueueReport
      })

      const longest = Effect.gen(function* () {
        const as_of = new Date(yield* Clock.currentTimeMillis).toISOString()
        const rows = yield* backlogs(sql)
        const items = rows.map(({ counted: _, oldest, ...row }) => ({
          ...row,
          oldest_due_at: oldest?.toISOString() ?? null,
        }))
        return { as_of, capped: (rows[0]?.counted ?? 0) >= mostDeliveries, items } satisfies WebhookBacklogs
      })

      const read = Effect.fn("Queues.read")(function* (personId: PersonId) {
        yield* operating(personId)
        return yield* counted
      })

      const webhooks = Effect.fn("Queues.webhooks")(function* (personId: PersonId) {
        yield* operating(personId)
        return yield* longest
      })

      return Queues.of({ read, webhooks, observed: Effect.all({ queues: counted, backlogs: longest }) })
    }),
  )
}
