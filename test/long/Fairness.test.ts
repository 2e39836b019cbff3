/**
 * One healthy endpoint alone, and beside twenty silent ones and an account with 100,000 due retries, in turns: how long
 * its events take from publication to arrival. The disturbing receivers run in a process of their own.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Database } from "../../services/platform/database/Database.ts"
import { mailEvent } from "../e2e/support/EventFeed.ts"
import { until } from "../e2e/support/Until.ts"
import { type Account, fixture, type ProgramFixture } from "../e2e/support/ProgramFixture.ts"
import { start } from "../support/Processes.ts"
import { target } from "./support/Target.ts"
import { databaseOf } from "./support/Traffic.ts"

const holes = 20
const hard = 4
const retries = 100_000
const stuck = 100
const turns = 4
const samples = 150
const everyMillis = 20

const hook = Effect.fnUntraced(function* ({ api }: Account, url: string) {
  const { json, status, text } = yield* api.post("/v1/webhooks/", { url, events: ["email.sent"] })
  assert.strictEqual(status, 201, text)
  return { api, id: String(json.id) }
})

type Hook = Effect.Success<ReturnType<typeof hook>>

/** `count` deliveries of a webhook whose first attempt failed an hour ago and whose second one is due, as settled. */
const mountain = Effect.fnUntraced(function* (accountId: string, hookId: string, count: number) {
  const { owner } = yield* Database
  const body = JSON.stringify({ event: "email.sent", email_id: "em_0", metadata: { subject: "x".repeat(200) } })
  yield* owner`
    with made as materialized (
      select to_timestamp(ms / 1000.0) as at, (lpad(to_hex(ms), 12, '0') || '7' || substr(md5(${hookId} || n), 1, 3)
        || '8' || substr(md5(${hookId} || n), 4, 15))::uuid as id
      from (select n, ${Date.now()}::bigint - n as ms from generate_series(1, ${count}::int) n) m
    ), event as (
      insert into events (id, account_id, source_id, event, body, created_at)
      select id, ${accountId}::uuid, id::text, 'email.sent', ${body}, at from made
    ), delivery as (
      insert into deliveries (id, webhook_id, account_id, event_id, event_type, status, cycle, attempt, response_status,
        next_retry_at, created_at)
      select id, ${hookId}::uuid, ${accountId}::uuid, id, 'email.sent', 'retrying', 1, 1, 503, at, at from made
    ), counted as (
      insert into delivery_counts (webhook_id, day, status, n)
      select ${hookId}::uuid, at::date, 'retrying', count(*) from made group by 2
    )
    insert into delivery_queue (delivery_id, webhook_id, account_id, event_id, cycle, attempt, due_at)
    select id, ${hookId}::uuid, ${accountId}::uuid, id, 1, 2, at from made`
})

const quantile = (sorted: ReadonlyArray<number>, q: number) => sorted[Math.floor(q * (sorted.length - 1))]!

const summary = (took: ReadonlyArray<number>) => {
  const sorted = [...took].sort((a, b) => a - b)
  return { p50: quantile(sorted, 0.5), p95: quantile(sorted, 0.95), p99: quantile(sorted, 0.99), max: sorted.at(-1)! }
}

const shown = ({ max, p50, p95, p99 }: ReturnType<typeof summary>) =>
  `p50 ${p50}, p95 ${p95}, p99 ${p99}, worst ${max} ms`

const measure = Effect.fnUntraced(function* (
  { feed }: ProgramFixture,
  accountId: string,
  receiver: Effect.Success<ReturnType<typeof target>>,
  name: string,
) {
  const published = new Map<string, number>()
  const before = receiver.hits.length
  for (let n = 0; n < samples; n++) {
    const event = mailEvent(accountId, `${name}-${n}`, "email.sent")
    published.set(event.email_id, Date.now())
    yield* feed.events([event])
    yield* Effect.sleep(everyMillis)
  }
  const own = Effect.sync(() => receiver.hits.length - before)
  yield* until(`the last of ${name}`, own, (n) => n >= samples)
  return receiver.hits.slice(before).map((hit) => hit.at - published.get(JSON.parse(hit.body).email_id)!)
})

describe("a healthy endpoint", () => {
  it.live("gets its events in at most about twice the time beside silent endpoints and 100,000 due retries", () =>
    Effect.gen(function* () {
      const around = yield* fixture({
        WEBHOOKS_TIMEOUT: "2 seconds",
        WEBHOOKS_RETRY_DELAYS: Array(8).fill("1 hour").join(","),
      })
      const crowd = yield* start({
        module: "test/long/support/Crowd.ts",
        env: { HARD: String(hard), HOLES: String(holes) },
      })
      const [, ports] = yield* crowd.line(/receivers (.*)/)
      const others: { readonly hard: ReadonlyArray<number>; readonly holes: ReadonlyArray<number> } = JSON.parse(ports!)
      const [healthy, heavy, blocked] = yield* Effect.all([around.account(), around.account(), around.account()])
      const receiver = yield* target(() => 204)
      yield* hook(healthy, receiver.url("/healthy"))

      yield* Effect.gen(function* () {
        const { sql } = yield* Database
        const beside: Array<Hook> = []
        for (const port of others.hard) {
          const made = yield* hook(heavy, `http://127.0.0.1:${port}/hard`)
          beside.push(made)
          yield* mountain(heavy.id, made.id, retries / hard)
        }
        for (const port of others.holes) beside.push(yield* hook(blocked, `http://127.0.0.1:${port}/hole`))
        const ids = Array.from({ length: stuck }, (_, n) => mailEvent(blocked.id, `stuck-${n}`, "email.sent"))
        yield* around.feed.events(ids)

        const turn = Effect.fnUntraced(function* (active: boolean) {
          for (const { api, id } of beside) {
            assert.strictEqual((yield* api.patch(`/v1/webhooks/${id}`, { is_active: active })).status, 200)
          }
          const busy = sql<{ n: number }>`select count(*)::int as n from delivery_queue where claim is not null`
          if (!active) yield* until("nothing in flight", busy, ([row]) => row!.n === 0)
        })
        const tried = Effect.map(
          sql<{ n: number }>`
            select count(*)::int as n from delivery_queue where account_id = ${heavy.id}::uuid and attempt = 3`,
          ([row]) => row!.n,
        )

        yield* turn(false)
        yield* measure(around, healthy.id, receiver, "warm")
        const alone: Array<number> = []
        const beset: Array<number> = []
        let retried = 0
        for (let round = 0; round < turns; round++) {
          alone.push(...(yield* measure(around, healthy.id, receiver, `alone-${round}`)))
          yield* turn(true)
          const before = yield* tried
          beset.push(...(yield* measure(around, healthy.id, receiver, `beside-${round}`)))
          retried += (yield* tried) - before
          yield* turn(false)
        }
        const [own, theirs] = [summary(alone), summary(beset)]
        console.log(
          `publish → arrival at one healthy endpoint: alone ${shown(own)}; beside ${shown(theirs)}; ` +
            `${retried} retries meanwhile, ${retries - (yield* tried)} of ${retries} left`,
        )
        assert.isAbove(retried, 1_000)
        // Two cores carry the program, PostgreSQL, the broker and every receiver, beside other tests: hence the
        // constants.
        assert.isAtMost(theirs.p50, 2 * own.p50 + 20)
        assert.isAtMost(theirs.p99, 2 * own.p99 + 100)
      }).pipe(Effect.provide(databaseOf(around)))
    }).pipe(Effect.scoped))
})
