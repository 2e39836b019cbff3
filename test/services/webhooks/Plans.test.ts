/**
 * The rows that the hot statements read while 200,000 retries wait: only due ones, by index, in their own day.
 * PostgreSQL counts them for the transaction under test, on tables without statistics and after ANALYZE.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import type { AccountId, WebhookId } from "../../../schemas/BrandedIds.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { Deliveries } from "../../../services/webhooks/Deliveries.ts"
import { Partitions } from "../../../services/webhooks/Partitions.ts"
import { Replays } from "../../../services/webhooks/Replays.ts"
import { noon } from "../../support/Fixtures.ts"
import {
  claimAll,
  claimBacklog,
  event,
  failed,
  fixture,
  now,
  resultOf,
  settle,
  take,
  webhook,
} from "./WebhookFixture.ts"

interface Touched {
  readonly read: number
  readonly fetched: number
  readonly scans: number
}

const counters = Effect.flatMap(Database, ({ sql }) =>
  sql<Touched & { name: string }>`
    select relname as name, seq_tup_read::int as read, coalesce(idx_tup_fetch, 0)::int as fetched,
      (seq_scan + coalesce(idx_scan, 0))::int as scans
    from pg_stat_xact_user_tables`)

/** Runs an effect in a transaction; returns its value and what it read of each table. Earlier counts are subtracted. */
const touching = Effect.fnUntraced(function* <A, E, R>(run: Effect.Effect<A, E, R>) {
  const { sql } = yield* Database
  return yield* Effect.gen(function* () {
    const before = new Map((yield* counters).map((row) => [row.name, row]))
    const value = yield* run
    const touched = (yield* counters).map(({ name, ...row }) => {
      const { fetched, read, scans } = before.get(name) ?? { fetched: 0, read: 0, scans: 0 }
      return [name, { fetched: row.fetched - fetched, read: row.read - read, scans: row.scans - scans }] as const
    })
    return { value, touched: new Map(touched.filter(([, { scans }]) => scans > 0)) }
  }).pipe(sql.withTransaction)
})

/** Asserts at most `most` index reads of tables that grow with traffic, and a few reads per webhook of the others. */
const assertReads = (statement: string, touched: ReadonlyMap<string, Touched>, most: number) => {
  for (const [name, { fetched, read }] of touched) {
    const grows = /^(delivery_queue|seen_events|seen_ids|dead_letters|(events|deliveries|attempts)_(p|default))/.test(
      name,
    )
    assert.isAtMost(read, grows ? 1_000 : 3 * others, `${statement} read all of ${name}`)
    assert.isAtMost(fetched, grows ? most : 3 * others, `${statement} fetched from ${name}`)
  }
  const days = [...touched.keys()].filter((name) => /^(deliveries|attempts)_(p|default)/.test(name))
  assert.deepStrictEqual(days.filter((name) => !name.endsWith("p20260310")), [], `${statement} looked into other days`)
}

const hooks = 20
/** Webhooks of other accounts. */
const others = 5_000
const waiting = 200_000
/** Queue rows of the backlog that also have deliveries, events and attempts. */
const complete = 20_000

/** The backlog: deliveries of yesterday and today that have failed, none of them due yet. */
const backlog = Effect.gen(function* () {
  const { owner, sql } = yield* Database
  yield* (yield* Partitions).upkeep
  for (const table of ["events", "deliveries", "attempts"]) {
    for (const day of ["p20260309", "p20260310"]) {
      yield* owner.unsafe(`alter table ${table}_${day} set (autovacuum_enabled = off)`)
    }
  }
  yield* owner`alter table delivery_queue set (autovacuum_enabled = off)`
  const all = []
  for (let i = 0; i < hooks; i++) all.push(yield* webhook())
  const ids = all.map(({ id }) => id)
  const id = (kind: string) =>
    `(lpad(to_hex(${noon} - (i % 2) * 86400000 - i), 12, '0') || '7${kind}00' || '8000' || lpad(to_hex(i), 12, '0'))::uuid`
  yield* owner.unsafe(
    `insert into events (id, account_id, source_id, event, body, created_at)
    select ${id("e")}, '${all[0]!.accountId}', i::text, 'email.delivered', '{}', to_timestamp(${noon / 1000})
    from generate_series(1, ${complete}) i`,
  )
  yield* owner.unsafe(
    `insert into deliveries (id, webhook_id, account_id, event_id, event_type, status, cycle, attempt, created_at)
    select ${id("d")}, (array['${ids.join("','")}'])[1 + i % ${hooks}]::uuid, '${all[0]!.accountId}', ${id("e")},
      'email.delivered', 'retrying', 1, 3, to_timestamp(${noon / 1000}) from generate_series(1, ${complete}) i`,
  )
  yield* owner.unsafe(
    `insert into delivery_queue (delivery_id, webhook_id, account_id, event_id, cycle, attempt, due_at)
    select ${id("d")}, (array['${ids.join("','")}'])[1 + i % ${hooks}]::uuid, '${all[0]!.accountId}', ${id("e")}, 1, 4,
      to_timestamp(${noon / 1000} + 3600 + i) from generate_series(1, ${waiting}) i`,
  )
  yield* owner.unsafe(
    `insert into attempts (delivery_id, cycle, attempt, claim, started_at, duration_ms, response_status)
    select ${id("d")}, 1, 3, 0, to_timestamp(${noon / 1000}), 5, 500
    from generate_series(1, ${complete}) i`,
  )
  // Webhooks of other accounts, so that a scan of all webhooks is noticed.
  yield* owner`
    insert into webhooks (id, account_id, url, events, is_active, version, secret_kid, secret, created_at, updated_at)
    select gen_random_uuid(), gen_random_uuid(), url, events, true, 1, secret_kid, secret, created_at, updated_at
    from webhooks, generate_series(1, ${others / hooks}::int)`
  yield* owner`insert into webhook_lanes (webhook_id, account_id)
    select id, account_id from webhooks on conflict do nothing`
  yield* sql`update webhook_lanes set next_due_at = ${new Date(noon + 3_600_000)}`
  return all
})

const cycle = (all: ReadonlyArray<{ id: WebhookId; accountId: AccountId }>) =>
  Effect.gen(function* () {
    const { scan } = yield* Deliveries
    const events = () => all.slice(0, 10).flatMap(({ accountId }) => Array.from({ length: 20 }, () => event(accountId)))
    const accepted = yield* touching(take(events(), 0))
    assertReads("accept", accepted.touched, 1_000)
    const scanned = yield* touching(scan)
    const ids = scanned.value.flatMap(({ deliveryIds }) => deliveryIds)
    assert.lengthOf(ids, 200)
    assertReads("the scan", scanned.touched, 500)
    assertReads("the scan of nothing", (yield* touching(scan)).touched, 100)

    const claimed = yield* touching(claimAll(ids))
    assert.lengthOf(claimed.value, 200)
    assertReads("the claim", claimed.touched, 1_200)
    const { sql } = yield* Database
    const at = yield* now
    const results = claimed.value.map((task, i) =>
      i % 4 === 0 ? failed(task, at) : i % 40 === 1 ? resultOf(task, at, dying) : resultOf(task, at)
    )
    const done = yield* touching(settle(results))
    assert.lengthOf(done.value, 200)
    assertReads("the settlement", done.touched, 1_200)
    const [ended] = results.filter(({ status }) => status === 200)
    const again = yield* touching((yield* Replays).again(ended!.task.webhookId, [ended!.task.deliveryId]))
    assert.strictEqual(again.value, 1)
    assertReads("the replay", again.touched, 100)
    yield* claimAll([ended!.task.deliveryId])

    // Deliveries without a slot are claimed per webhook; by the generic plan, which PostgreSQL uses after five runs.
    yield* take(events(), 0)
    const generic = sql`set local plan_cache_mode = force_generic_plan`
    const claimedDue = yield* touching(Effect.andThen(generic, claimBacklog(all.slice(0, 10), 20)))
    assert.lengthOf(claimedDue.value, 200)
    assertReads("the claim of a backlog", claimedDue.touched, 1_600)
    assert.lengthOf(yield* settle(claimedDue.value.map((task) => resultOf(task, at))), 200)
  })

const dying = { ending: "interrupted", fatal: true, status: null, error: "interrupted" } as const

layer(Layer.fresh(fixture()))("Plans", (it) => {
  it.effect(
    "read only due rows beside 200,000 later retries, without statistics and after ANALYZE",
    () =>
      Effect.gen(function* () {
        const all = yield* backlog
        yield* cycle(all)
        const { owner } = yield* Database
        yield* owner`analyze`
        yield* cycle(all)
      }),
    120_000,
  )
})
