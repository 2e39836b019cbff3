/**
 * One healthy endpoint alone, then beside twenty that never answer and an account with 20,000 due retries: how long its
 * events take, from publication to arrival, both measured in the same run.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Database } from "../../services/platform/Database.ts"
import { serve } from "../services/platform/Outbound/servers.ts"
import { mailEvent } from "../e2e/support/Feed.ts"
import { until } from "../e2e/support/until.ts"
import { type Account, type World, world } from "../e2e/support/World.ts"
import { target } from "./support/Target.ts"
import { databaseOf } from "./support/Traffic.ts"

const holes = 20
const retries = 20_000
const retryHooks = 4
const samples = 200
const everyMillis = 25

const hook = Effect.fnUntraced(function* ({ api }: Account, url: string) {
  const { status, text } = yield* api.post("/v1/webhooks/", { url, events: ["email.sent"] })
  assert.strictEqual(status, 201, text)
})

const publish = Effect.fnUntraced(function* (world: World, accountId: string, name: string, count: number) {
  for (let from = 0; from < count; from += 500) {
    const ids = Array.from({ length: Math.min(500, count - from) }, (_, i) => `${name}-${from + i}`)
    yield* world.feed.events(ids.map((id) => mailEvent(accountId, id, "email.sent")))
  }
})

const quantile = (sorted: ReadonlyArray<number>, q: number) => sorted[Math.floor(q * (sorted.length - 1))]!

describe("fairness", () => {
  it.live("leaves a healthy endpoint its pace beside black holes and a mountain of retries", () =>
    Effect.gen(function* () {
      const around = yield* world({
        WEBHOOKS_TIMEOUT: "5 seconds",
        WEBHOOKS_RETRY_DELAYS: ["20 seconds", ...Array(7).fill("1 hour")].join(","),
      })
      const healthy = yield* around.account()
      const stuck = yield* around.account()
      const heavy = yield* around.account()
      const receiver = yield* target(({ path }) => path === "/healthy" ? 204 : 503)
      yield* hook(healthy, receiver.url("/healthy"))

      const measure = Effect.fnUntraced(function* (name: string) {
        const published = new Map<string, number>()
        for (let n = 0; n < samples; n++) {
          const event = mailEvent(healthy.id, `${name}-${n}`, "email.sent")
          published.set(event.email_id, Date.now())
          yield* around.feed.events([event])
          yield* Effect.sleep(everyMillis)
        }
        const own = () => receiver.at("/healthy").filter((hit) => published.has(JSON.parse(hit.body).email_id))
        yield* until(`the last of ${name}`, Effect.sync(() => own().length), (n) => n >= samples, 60)
        const took = own().map((hit) => hit.at - published.get(JSON.parse(hit.body).email_id)!).sort((a, b) => a - b)
        return { p50: quantile(took, 0.5), p95: quantile(took, 0.95), p99: quantile(took, 0.99) }
      })
      yield* measure("warm")
      const alone = yield* measure("alone")

      yield* Effect.gen(function* () {
        const { sql } = yield* Database
        const black = yield* Effect.forEach(
          Array.from({ length: holes }),
          () => serve((request) => void request.resume()),
        )
        for (const { port } of black) yield* hook(stuck, `http://127.0.0.1:${port}/hole`)
        for (let n = 0; n < retryHooks; n++) yield* hook(heavy, receiver.url(`/heavy/${n}`))
        yield* publish(around, heavy.id, "heavy", retries / retryHooks)
        yield* publish(around, stuck.id, "stuck", 100)
        const backlog = sql<{ due: number; all: number }>`
          select count(*)::int as all, count(*) filter (where due_at <= clock_timestamp())::int as due
          from delivery_queue where account_id = ${heavy.id}::uuid`
        const before = yield* until(
          "retries that are due",
          Effect.delay(backlog, "250 millis"),
          ([row]) => row!.due > 5_000,
          120,
        )
        const beside = yield* measure("beside")
        const [after] = yield* backlog
        const shown = (m: typeof alone) => `p50 ${m.p50}, p95 ${m.p95}, p99 ${m.p99} ms`
        console.log(
          `publish → arrival at one healthy endpoint: alone ${shown(alone)}; beside ${shown(beside)}; ` +
            `due retries ${before[0]!.due} before, ${after!.due} after, ${after!.all} waiting`,
        )
        assert.isAbove(black.reduce((n, { requests }) => n + requests.length, 0), 0)
        // Two cores carry the program, PostgreSQL, the broker and every receiver, beside other tests: hence the constants.
        assert.isAtMost(beside.p50, 2 * alone.p50 + 150)
        assert.isAtMost(beside.p95, 2 * alone.p95 + 1_500)
      }).pipe(Effect.provide(databaseOf(around)))
    }).pipe(Effect.scoped))
})
