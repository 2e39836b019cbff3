/**
 * The process that upholds webhooks is killed with SIGKILL while it pauses a failing webhook, and while it sends the events
 * that a paused one missed; another process goes on. The pause is told once, with its audit record, and each missed event is
 * sent once. It is killed within a bite of a backfill and between two as well: each row is changed once.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { join } from "node:path"
import type { Backfill } from "../../services/platform/database/Backfills.ts"
import { Database } from "../../services/platform/database/Database.ts"
import type { FaultPoint } from "../../services/platform/Failpoints.ts"
import { mailEvent } from "../e2e/support/EventFeed.ts"
import { type Account, fixture, type ProgramFixture } from "../e2e/support/ProgramFixture.ts"
import { deliveries, hook } from "../e2e/support/ProgramWebhooks.ts"
import { receiver } from "../e2e/support/Receiver.ts"
import { until } from "../e2e/support/Until.ts"
import { home, start } from "../support/Processes.ts"
import { databaseOf } from "./support/Traffic.ts"

/** All but the process that upholds webhooks, which is the one that dies. */
const others = "api,actors,relay,intake,delivery,mail,lifecycle"

/** A backfill that counts how often it changes each row. */
const boats: Backfill = {
  name: "boats_filled",
  table: "boats",
  key: "id",
  left: "not filled",
  fill: "update boats set filled = true, n = n + 1 from bite where id = bite.key",
}

/** A process that upholds webhooks; it dies at the point, if there is one. */
const upholding = Effect.fnUntraced(function* (around: ProgramFixture, point: FaultPoint | "none", nth = 1) {
  return yield* start({
    module: "test/long/support/FaultMain.ts",
    env: {
      ...around.env,
      ROLES: "timers",
      BAILIWICK_HOME: yield* home,
      BAILIWICK_KEYS_FILE: join(around.home, "keys.json"),
      FAULT: `${point}:${nth}`,
      BACKFILLS: JSON.stringify([boats]),
      BACKFILL_FLOOR: "200",
      BACKFILL_RATE: "200",
    },
  })
})

const killed = Effect.fnUntraced(function* (around: ProgramFixture, point: FaultPoint, nth = 1) {
  const doomed = yield* upholding(around, point, nth)
  assert.isNull(yield* doomed.exited, `SIGKILL, nothing else: ${doomed.output()}`)
}, Effect.scoped)

/** A webhook whose every attempt has failed for six days, as its attempts' minutes would have it. */
const failing = Effect.fnUntraced(function* (around: ProgramFixture, { api }: Account, path: string) {
  const { sql } = yield* Database
  const own = yield* hook(api, yield* receiver(around.tls, () => 500), path, ["email.delivered"])
  yield* sql`
    insert into webhook_health (webhook_id, last_failure_at, failing_since)
    values (${own.id}::uuid, now(), now() - interval '6 days')`
  return own.id
})

const pauseOf = Effect.fnUntraced(function* (id: string) {
  const { sql } = yield* Database
  const [row] = yield* sql<{ active: boolean; paused: boolean; audited: number; told: number }>`
    select w.is_active as active, l.paused,
      (select count(*)::int from audit_records
        where action = 'webhook.paused' and subject = ${`webhook:${id}`} and actor = 'system') as audited,
      (select count(*)::int from notifications n where n.account_id = w.account_id and n.href like ${`%${id}%`}) as told
    from webhooks w join webhook_lanes l on l.webhook_id = w.id where w.id = ${id}::uuid`
  return row!
})

const paused = { active: false, paused: true, audited: 1, told: 1 }
const untouched = { active: true, paused: false, audited: 0, told: 0 }

const pausedOnce = Effect.fnUntraced(
  function* (around: ProgramFixture, point: "failing.written" | "failing.committed") {
    const account = yield* around.account()
    const id = yield* failing(around, account, `/${point}`)
    yield* killed(around, point)
    assert.deepStrictEqual(yield* pauseOf(id), point === "failing.committed" ? paused : untouched, point)
    // Its pause shows that the other process has looked at all.
    const later = yield* failing(around, account, `/${point}-later`)
    yield* upholding(around, "none")
    for (const one of [later, id]) {
      yield* until(`the pause after ${point}`, pauseOf(one), ({ active }) => !active)
      assert.deepStrictEqual(yield* pauseOf(one), paused, point)
    }
  },
  Effect.scoped,
)

const sentOnce = Effect.fnUntraced(function* (around: ProgramFixture, point: "missed.written" | "missed.committed") {
  const { sql } = yield* Database
  const { api, id: accountId } = yield* around.account()
  const path = `/${point}`
  const target = yield* receiver(around.tls, () => 200)
  const own = yield* hook(api, target, path, ["email.delivered"])
  const since = new Date(Date.now() - 60_000).toISOString()
  yield* api.patch(`/v1/webhooks/${own.id}`, { is_active: false })
  const events = ["a", "b", "c"].map((name) => mailEvent(accountId, `${point.replace(".", "-")}-${name}`))
  yield* around.feed.events(events)
  const notes = Effect.map(
    sql<{ n: number }>`select count(*)::int as n from missed_events where webhook_id = ${own.id}::uuid`,
    ([row]) => row!.n,
  )
  yield* until("the missed events", notes, (n) => n === events.length)
  yield* api.patch(`/v1/webhooks/${own.id}`, { is_active: true })
  const replay = api.post(`/v1/webhooks/${own.id}/replay`, { since, status: "missed" })
  const asked = yield* replay
  assert.deepStrictEqual([asked.status, asked.json.replayed], [202, events.length])

  yield* killed(around, point)
  const done = point === "missed.committed"
  assert.strictEqual(yield* notes, done ? 0 : events.length, point)
  if (!done) assert.lengthOf(yield* deliveries(api, own.id), 0, point)
  yield* upholding(around, "none")
  const all = yield* until(
    `the deliveries after ${point}`,
    deliveries(api, own.id),
    (all) => all.length === events.length && all.every(({ status }) => status === "delivered"),
  )
  assert.lengthOf(all, events.length, point)
  assert.strictEqual((yield* replay).json.replayed, 0, point)
  // The killed chunk is done once its job is: nothing of it is left to be sent again.
  const open = sql`select from jobs where kind = 'webhooks.replay-missed' and state = 'pending'`
  yield* until(`the end of the jobs after ${point}`, open, ({ length }) => length === 0)
  assert.lengthOf(target.at(path), events.length, point)
  assert.strictEqual(yield* notes, 0, point)
}, Effect.scoped)

/** Rows of the table that were changed, and the most often that one was. */
const changed = Effect.flatMap(Database, ({ sql }) =>
  Effect.map(
    sql<{ rows: number; most: number; progress: number }>`
      select count(*) filter (where filled)::int as rows, max(n) as most,
        coalesce((select changed_rows::int from backfills where name = ${boats.name}), 0) as progress
      from boats`,
    ([row]) => row!,
  ))

const filledOnce = Effect.fnUntraced(function* (around: ProgramFixture) {
  const { owner } = yield* Database
  yield* owner`
    create table boats (id integer primary key, filled boolean not null default false, n integer not null default 0)`
  yield* owner`insert into boats (id) select generate_series(1, 250)`
  yield* owner`grant all on boats to public`
  // Bites of fifty rows: the second one of each process is cut, and its first one stays.
  yield* killed(around, "backfill.written", 2)
  assert.deepStrictEqual(yield* changed, { rows: 50, most: 1, progress: 50 })
  yield* killed(around, "backfill.committed", 2)
  assert.deepStrictEqual(yield* changed, { rows: 150, most: 1, progress: 150 })
  yield* Effect.all([upholding(around, "none"), upholding(around, "none")], { concurrency: "unbounded" })
  yield* until("the end of the backfill", changed, ({ progress }) => progress === 250)
  assert.deepStrictEqual(yield* changed, { rows: 250, most: 1, progress: 250 })
}, Effect.scoped)

describe.concurrent("the upkeep of webhooks, killed", () => {
  it.live("a backfill changes each row once, also where two processes go on with it", () =>
    Effect.gen(function* () {
      const around = yield* fixture({ ROLES: others })
      yield* Effect.provide(filledOnce(around), databaseOf(around))
    }).pipe(Effect.scoped), 600_000)

  it.live("a failing webhook is paused and told of once", () =>
    Effect.gen(function* () {
      const around = yield* fixture({ ROLES: others, WEBHOOKS_PAUSE_FAILING: "true" })
      yield* Effect.forEach(["failing.written", "failing.committed"] as const, (point) => pausedOnce(around, point))
        .pipe(
          Effect.provide(databaseOf(around)),
        )
    }).pipe(Effect.scoped), 600_000)

  it.live("events that a paused webhook missed are sent once", () =>
    Effect.gen(function* () {
      const around = yield* fixture({ ROLES: others })
      yield* Effect.forEach(["missed.written", "missed.committed"] as const, (point) => sentOnce(around, point)).pipe(
        Effect.provide(databaseOf(around)),
      )
    }).pipe(Effect.scoped), 600_000)
})
