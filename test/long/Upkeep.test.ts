/**
 * Long jobs over many deliveries, killed in the middle: they go on where they were, and every count is always exact.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Database } from "../../services/platform/database/Database.ts"
import { mailEvent } from "../e2e/support/EventFeed.ts"
import { until } from "../e2e/support/Until.ts"
import { totals } from "../e2e/support/ProgramWebhooks.ts"
import { type Account, fixture, type ProgramFixture } from "../e2e/support/ProgramFixture.ts"
import { brisk } from "./support/Second.ts"
import { target } from "./support/Target.ts"
import { databaseOf } from "./support/Traffic.ts"

const many = 20_000
const chunk = 1_000

/** The counts, and the rows that they count, at one moment: one statement reads both. */
const counts = Effect.fnUntraced(function* (hookId: string) {
  const { sql } = yield* Database
  const [row] = yield* sql<{ counted: Record<string, number>; stored: Record<string, number> }>`
    select
      (select coalesce(json_object_agg(status, n), '{}') from (
        select status, sum(n)::int as n from delivery_counts where webhook_id = ${hookId}::uuid
        group by status having sum(n) <> 0) c) as counted,
      (select coalesce(json_object_agg(status, n), '{}') from (
        select status, count(*)::int as n from deliveries where webhook_id = ${hookId}::uuid group by status) d) as stored`
  assert.deepStrictEqual(row!.counted, row!.stored)
  return row!.stored
})

/** Waits until `good`, and compares counts and rows at every look. */
const exactly = (what: string, hookId: string, good: (n: Record<string, number>) => boolean, seconds = 120) =>
  until(what, Effect.delay(counts(hookId), "100 millis"), good, seconds)

const publish = Effect.fnUntraced(function* (fixture: ProgramFixture, accountId: string, round: string, count: number) {
  for (let from = 0; from < count; from += chunk) {
    const ids = Array.from({ length: Math.min(chunk, count - from) }, (_, i) => `${round}-${from + i}`)
    const taken = yield* fixture.feed.events(ids.map((id) => mailEvent(accountId, id, "email.sent")))
    assert.strictEqual(taken.length, ids.length)
  }
})

/** Kills the program while the newest job is somewhere in its middle, and starts it again. */
const killInTheMiddle = Effect.fnUntraced(function* (fixture: ProgramFixture) {
  const { sql } = yield* Database
  const job = sql<{ done: number; state: string }>`
    select done::int, state from jobs order by created_at desc limit 1`
  yield* until("the middle of the job", job, ([row]) => row !== undefined && row.done >= 3 * chunk)
  yield* fixture.instance.end("SIGKILL")
  const [row] = yield* job
  assert.strictEqual(row!.state, "pending", `the job was over before it was killed: ${row!.done}`)
  yield* fixture.instance.start()
})

const hookOf = Effect.fnUntraced(function* ({ api }: Account, url: string) {
  const { json, status, text } = yield* api.post("/v1/webhooks/", { url, events: ["email.sent"] })
  assert.strictEqual(status, 201, text)
  return String(json.id)
})

describe("upkeep", () => {
  it.live(`replays ${many} deliveries and deletes a webhook with as many waiting, killed in both`, () =>
    Effect.gen(function* () {
      const around = yield* fixture(brisk)
      const account = yield* around.account()
      const { api } = account
      const receiver = yield* target(() => 204)
      const hookId = yield* hookOf(account, receiver.url("/many"))
      yield* Effect.gen(function* () {
        const { sql } = yield* Database
        const since = new Date(Date.now() - 60_000).toISOString()
        yield* publish(around, account.id, "first", many)
        yield* exactly("the first deliveries", hookId, (n) => n["delivered"] === many, 180)

        // Paused, so that replayed deliveries wait and can be counted.
        assert.strictEqual((yield* api.patch(`/v1/webhooks/${hookId}`, { is_active: false })).status, 200)
        const arrived = receiver.hits.length
        const replay = yield* api.post(`/v1/webhooks/${hookId}/replay`, { since, status: "delivered" })
        assert.deepStrictEqual([replay.status, replay.json.replayed], [202, many])
        yield* killInTheMiddle(around)
        yield* exactly("the replay's end", hookId, (n) => n["pending"] === many)
        assert.deepStrictEqual(yield* totals(api, hookId), {
          all: many,
          pending: many,
          retrying: 0,
          delivered: 0,
          dead_letter: 0,
          cancelled: 0,
        })
        const cycles = yield* sql`select distinct cycle from deliveries where webhook_id = ${hookId}::uuid`
        assert.deepStrictEqual(cycles, [{ cycle: 2 }])

        assert.strictEqual((yield* api.delete(`/v1/webhooks/${hookId}`)).status, 204)
        yield* killInTheMiddle(around)
        yield* exactly("the cancelling's end", hookId, (n) => n["cancelled"] === many)
        const [left] = yield* sql<{ n: number }>`select count(*)::int as n from delivery_queue`
        assert.strictEqual(left!.n, 0)
        assert.strictEqual(receiver.hits.length, arrived, "something was sent of a paused or deleted webhook")
      }).pipe(Effect.provide(databaseOf(around)))
    }).pipe(Effect.scoped))

  it.live("the queue's table stops growing after two rounds: the space of deleted rows is used again", () =>
    Effect.gen(function* () {
      const around = yield* fixture(brisk)
      const account = yield* around.account()
      const receiver = yield* target(({ attempt, body }) => attempt === 1 && body.includes("7") ? 503 : 204)
      const hookId = yield* hookOf(account, receiver.url("/rounds"))
      yield* Effect.gen(function* () {
        const { owner } = yield* Database
        const round = Effect.fnUntraced(function* (n: number) {
          yield* publish(around, account.id, `round${n}`, 2 * chunk)
          yield* exactly(`round ${n}`, hookId, ({ delivered }) => delivered === (n + 1) * 2 * chunk)
          // As autovacuum does once a minute; it frees nothing while any transaction is open.
          yield* owner`vacuum delivery_queue`
          const [row] = yield* owner<{ bytes: number }>`select pg_total_relation_size('delivery_queue')::int as bytes`
          return row!.bytes
        })
        const sizes: Array<number> = []
        for (let n = 0; n < 6; n++) sizes.push(yield* round(n))
        console.log(`delivery_queue after each of ${sizes.length} rounds: ${sizes.join(", ")} bytes`)
        assert.isAtMost(sizes.at(-1)!, 1.5 * Math.max(sizes[0]!, sizes[1]!))
      }).pipe(Effect.provide(databaseOf(around)))
    }).pipe(Effect.scoped))
})
