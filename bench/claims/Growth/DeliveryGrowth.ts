/**
 * Ever more deliveries of as many webhooks: events, deliveries and attempts of a day, remembered event ids, a backlog
 * of retries due later, and some due now.
 */
import { Effect, Layer } from "effect"
import { SourceEventId } from "../../../schemas/BrandedIds.ts"
import { Cookies } from "../../../services/authentication/Cookies.ts"
import { KeyUses } from "../../../services/authentication/KeyUses.ts"
import { Principals } from "../../../services/authentication/Principals.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { Ids } from "../../../services/platform/Ids.ts"
import { Outbound } from "../../../services/platform/Outbound.ts"
import { CountCompaction } from "../../../services/webhooks/CountCompaction.ts"
import { DeliveryRecords } from "../../../services/webhooks/DeliveryRecords.ts"
import { accept } from "../../../services/webhooks/Deliveries/CreateDeliveries.ts"
import { announceDue, claimDue, expired } from "../../../services/webhooks/Deliveries/DeliveryClaims.ts"
import { Endpoints } from "../../../services/webhooks/Endpoints.ts"
import { Listeners } from "../../../services/webhooks/Listeners.ts"
import { Partitions } from "../../../services/webhooks/Partitions.ts"
import { specified } from "../../../services/webhooks/RetrySchedule.ts"
import { releasedOf, type Result, type Task } from "../../../services/webhooks/Sender/Task.ts"
import { settleDelivered } from "../../../services/webhooks/Settlement/SettleDelivered.ts"
import { decide } from "../../../services/webhooks/Settlement/SettlementDecision.ts"
import { settleUndelivered } from "../../../services/webhooks/Settlement/SettleUndelivered.ts"
import { fill as fillHooks, type Hook, hooksOn } from "../../harness/Fixture.ts"
import { keysFileOf } from "../../harness/Product.ts"
import { type Area, idOf, platform } from "./Area.ts"

const hooks = hooksOn([9, 10, 11, 12])
/** One webhook with few deliveries among all others. */
const [few] = hooksOn([13])
const dueEach = 250
const atOnce = 5
const lease = 60_000

const retention = { deliveredDays: 30, deadLetterDays: 90, intakeMemoryDays: 400 }

const fill = (rows: number, run: Parameters<Area["fill"]>[1]) =>
  Effect.gen(function* () {
    const { owner } = yield* Database
    yield* fillHooks([...hooks, few!], keysFileOf(run.servers))
    yield* (yield* Partitions).upkeep
    const now = Date.now()
    const midnight = Math.floor(now / 86_400_000) * 86_400_000
    // Of yesterday and today, so that neither partition is empty just after midnight.
    const began = midnight - 12 * 3_600_000
    const step = (now - began) / rows
    const source = owner`(
      select n, ms, ${
      owner.literal(idOf("ms", "n"))
    } as id, h.id as webhook_id, h.account_id, to_timestamp(ms / 1000.0) as at
      from (
        select n, (${began}::float8 + n * ${step}::float8)::bigint as ms from generate_series(1, ${rows}::bigint) n
      ) x join unnest(${[...hooks.map(({ id }) => id), few!.id]}::uuid[],
        ${[
      ...hooks.map(({ accountId }) => accountId),
      few!.accountId,
    ]}::uuid[]) with ordinality h(id, account_id, place)
        on h.place = case when n % (${rows}::bigint / 30) = 0 then ${
      hooks.length + 1
    } else n % ${hooks.length} + 1 end) s`
    yield* owner`
      insert into events (id, account_id, source_id, event, body, created_at)
      select id, account_id, 'evt-' || n, 'email.sent', '{}', at from ${source}`
    // Half of each webhook's failed, and are due again tomorrow; some are due now.
    const isLate = owner`n / ${hooks.length} % 2 = 1`
    yield* owner`
      insert into deliveries (id, webhook_id, account_id, event_id, event_type, status, cycle, attempt, response_status,
        next_retry_at, endpoint_url, response_body, created_at)
      select id, webhook_id, account_id, id, 'email.sent', case when ${isLate} then 'retrying' else 'delivered' end, 1, 1,
        case when ${isLate} then 500 else 200 end, case when ${isLate} then at + interval '1 day' end,
        'http://127.0.0.1/', 'ok', at from ${source}`
    yield* owner`
      insert into attempts (delivery_id, cycle, attempt, claim, started_at, duration_ms, response_status)
      select id, 1, 1, 1, at, 5, 500 from ${source}`
    yield* owner`
      insert into delivery_queue (delivery_id, webhook_id, account_id, event_id, cycle, attempt, due_at)
      select id, webhook_id, account_id, id, 1, 2,
        case when n <= ${
      2 * dueEach * hooks.length
    } then at else at + interval '1 day' end from ${source} where ${isLate}`
    // As many again whose ids carry no time, from before the daily partitions and since.
    yield* owner`
      insert into seen_events (account_id, key, seen_on) select account_id, md5(id::text)::uuid, at::date from ${source}`
    yield* owner`
      insert into seen_ids (key, seen_on)
      select overlay(md5(id::text) placing '000000000000' from 1 for 12)::uuid, at::date from ${source}
      on conflict do nothing`
    yield* owner`
      insert into delivery_counts (webhook_id, day, status, n, folded)
      select webhook_id, at::date, case when ${isLate} then 'retrying' else 'delivered' end, count(*), true
      from ${source} group by 1, 2, 3`
    yield* owner`vacuum analyze events, deliveries, attempts, seen_events, seen_ids, delivery_queue, delivery_counts, webhooks, webhook_lanes`
  }).pipe(Effect.provide(Partitions.layer(retention)))

const services = Layer.mergeAll(
  Endpoints.layer.pipe(Layer.provide(
    Outbound.layer({ allowedCidrs: ["127.0.0.0/8"], certificateAuthorities: [], timeoutMillis: 5_000, ownPorts: [] }),
  )),
  CountCompaction.layer,
  Listeners.layer,
  Partitions.layer(retention),
  DeliveryRecords.layer({ deliveredDays: retention.deliveredDays }).pipe(
    Layer.provide(Principals.layer.pipe(Layer.provide(Layer.merge(Cookies.layer([]), KeyUses.layer)))),
  ),
)

const resultOf = (task: Result["task"], status: number): Result => ({
  ...releasedOf(task),
  ending: "answered",
  startedAt: Date.now(),
  durationMs: 5,
  status,
  body: "ok",
  url: "http://127.0.0.1/",
})

const statements: Area["statements"] = (fixture, run) =>
  Effect.gen(function* () {
    const context = yield* Layer.build(Layer.provideMerge(services, platform(fixture, run)))
    return yield* Effect.gen(function* () {
      const { quick, sql } = yield* Database
      const listeners = yield* Listeners
      const { next } = yield* Ids
      const endpoints = yield* Endpoints
      const records = yield* DeliveryRecords
      const counts = yield* CountCompaction
      let taken: ReadonlyArray<Task> = []
      const taking = Effect.flatMap(next, (id) =>
        accept(
          { sql, quick, endpoints, listeners, lease, reserve: () => true, release: () => {} },
          hooks.map(({ accountId, event }, i) => ({
            accountId,
            event,
            sourceId: SourceEventId.make(`${id}-${i}`),
            body: "{}",
          })),
        ))
      const claiming = Effect.suspend(() =>
        claimDue(
          { sql, endpoints, lease, giveBack: () => {} },
          hooks.map(({ accountId, id }) => ({ webhookId: id, accountId, count: atOnce })),
        )
      )
      const keep = <E>(tasks: Effect.Effect<ReadonlyArray<Task>, E>) =>
        Effect.map(tasks, (tasks) => void (taken = tasks))
      const credential = ({ accountId }: Hook) => ({ via: "cookie" as const, accountId, authTime: null })
      const page = (hook: Hook, status?: string, page = 0) => () =>
        records.page(credential(hook), hook.id, { page, limit: 50, status })
      const [hook] = hooks
      const due = sql`update webhook_lanes set next_due_at = now()`
      const n = hooks.length
      return [
        { name: `events: accept ${n}`, run: () => taking, descents: n * 8 },
        {
          name: `deliveries: settle ${n} that arrived`,
          prepare: keep(Effect.map(taking, ({ tasks }) => tasks)),
          run: () => settleDelivered(sql, taken.map((task) => resultOf(task, 200))),
          descents: n * 8,
        },
        {
          name: "deliveries: announce what is due",
          prepare: due,
          run: () => announceDue(sql, { queues: 256, depth: 100, again: 30_000 }),
          descents: n * 4,
        },
        { name: "deliveries: claim what is due", run: () => claiming, descents: n * atOnce * 6 },
        {
          name: "deliveries: settle what failed",
          prepare: keep(claiming),
          run: () => {
            const now = Date.now()
            const decisions = taken.map((task) => decide(specified, resultOf(task, 500), now, Math.random()))
            return settleUndelivered(sql, decisions, now)
          },
          descents: n * atOnce * 10,
        },
        { name: "deliveries: leases that ended", run: () => expired(sql, 500), descents: 1 },
        { name: "deliveries: compact the counts", run: () => counts.compact, descents: 4 },
        { name: "deliveries: page and total", run: page(hook!), descents: 4 },
        { name: "deliveries: page of few among many", run: page(few!), descents: 12 },
        { name: "deliveries: page 5", run: page(hook!, undefined, 5), descents: 4 },
        { name: "deliveries: page of the delivered", run: page(hook!, "delivered"), descents: 4 },
        { name: "deliveries: page of the few that wait", run: page(few!, "retrying"), descents: 120 },
      ]
    }).pipe(Effect.provide(context))
  })

export const deliveries: Area = { name: "deliveries", fill, statements }
