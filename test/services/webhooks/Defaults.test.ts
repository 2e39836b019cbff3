/**
 * How failing deliveries are retried with the default configuration, in virtual time, against a receiver on loopback.
 */
import { assert, layer } from "@effect/vitest"
import { ConfigProvider, Deferred, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import type { ServerResponse } from "node:http"
import { Database } from "../../../services/platform/database/Database.ts"
import { Deliveries } from "../../../services/webhooks/Deliveries.ts"
import { load } from "../../../src/AppConfig.ts"
import { serve } from "../platform/Outbound/LoopbackServers.ts"
import {
  comes,
  comesByItself,
  event,
  fixture,
  miscounted,
  now,
  recordOf,
  settling,
  stoppedClock,
  webhook,
} from "./WebhookFixture.ts"

const minute = 60_000
const hour = 60 * minute
/** The retry delays of the specification. */
const table = [minute, 5 * minute, 30 * minute, 2 * hour, 6 * hour, 24 * hour, 48 * hour]

/** The services with the program's defaults, as with an empty environment. */
const defaults = (clock?: Layer.Layer<never>) =>
  Layer.unwrap(Effect.gen(function* () {
    const { schedule, webhooksTimeout: timeoutMillis } = yield* load.pipe(
      Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromUnknown({})),
    )
    return Layer.provideMerge(settling, fixture({ schedule, timeoutMillis, ...(clock === undefined ? {} : { clock }) }))
  }))

const hookOn = (server: { readonly port: number }) => webhook({ url: `http://127.0.0.1:${server.port}/` })
const dueIds = Effect.map(
  Effect.flatMap(Deliveries, ({ scan }) => scan),
  (due) => due.flatMap(({ deliveryIds }) => deliveryIds),
)

const clock = stoppedClock()

layer(Layer.fresh(defaults(clock.layer)), { excludeTestServices: true })("The retry schedule", (it) => {
  it.effect("makes eight attempts, each at its delay or up to a tenth later, then a dead letter and nothing more", () =>
    Effect.gen(function* () {
      const bodies = new Set<string>()
      const numbers: Array<unknown> = []
      const receiver = yield* serve((request, response) => {
        let body = ""
        numbers.push(request.headers["x-webhook-attempt"])
        request.on("data", (chunk) => body += chunk).on("end", () => {
          bodies.add(body)
          response.writeHead(500).end("broken")
        })
      })
      const hook = yield* hookOn(receiver)
      const deliveries = yield* Deliveries
      const { tasks } = yield* deliveries.accept([event(hook.accountId)])
      const id = tasks[0]!.deliveryId
      for (const [i, delay] of table.entries()) {
        const failedAt = yield* now
        yield* comesByItself(Effect.map(recordOf(hook.accountId, id), ({ attempts }) => attempts.length === i + 1))
        const record = yield* recordOf(hook.accountId, id)
        assert.deepStrictEqual([record.status, record.attempt, record.response_status], ["retrying", i + 1, 500])
        const next = Date.parse(record.next_retry_at!)
        assert.isAtLeast(next, failedAt + delay)
        assert.isAtMost(next, failedAt + delay * 1.1 + 1)
        yield* clock.set(failedAt + delay - 1)
        assert.deepStrictEqual(yield* dueIds, [])
        yield* clock.set(next - 1)
        assert.deepStrictEqual(yield* dueIds, [])
        yield* clock.set(failedAt + Math.ceil(delay * 1.1))
        assert.lengthOf(receiver.requests, i + 1)
        const due = yield* deliveries.scan
        assert.deepStrictEqual(due.flatMap(({ deliveryIds }) => deliveryIds), [id])
        yield* deliveries.dispatch(due)
      }
      yield* comesByItself(Effect.map(recordOf(hook.accountId, id), ({ status }) => status === "dead_letter"))
      const record = yield* recordOf(hook.accountId, id)
      assert.deepStrictEqual([record.attempt, record.next_retry_at, record.response_body], [8, null, "broken"])
      assert.deepStrictEqual(record.attempts.map(({ attempt }) => attempt), [1, 2, 3, 4, 5, 6, 7, 8])
      assert.deepStrictEqual(numbers, ["1", "2", "3", "4", "5", "6", "7", "8"])
      assert.strictEqual(bodies.size, 1)
      const { sql } = yield* Database
      assert.deepStrictEqual(yield* sql`select from delivery_queue`, [])
      for (const later of [72 * hour, 80 * hour, 1_000 * hour]) {
        yield* clock.set((yield* now) + later)
        assert.deepStrictEqual(yield* dueIds, [])
      }
      assert.lengthOf(receiver.requests, 8)
      assert.deepStrictEqual(yield* miscounted, [])
      const announced = yield* sql<{ stream: string }>`select stream from outbox
        where stream in ('DEAD_LETTERS', 'NOTIFICATIONS') order by stream`
      assert.deepStrictEqual(announced.map(({ stream }) => stream), ["DEAD_LETTERS", "NOTIFICATIONS"])
    }))
})

layer(Layer.fresh(defaults()))("The deadline", (it) => {
  const receiving = Effect.fnUntraced(function* (partly: boolean) {
    const arrived = yield* Deferred.make<ServerResponse>()
    const receiver = yield* serve((request, response) => {
      request.resume()
      if (partly) response.writeHead(200, { "content-length": "2" }).write("o")
      Deferred.doneUnsafe(arrived, Effect.succeed(response))
    })
    const hook = yield* hookOn(receiver)
    const { tasks } = yield* (yield* Deliveries).accept([event(hook.accountId)])
    const record = recordOf(hook.accountId, tasks[0]!.deliveryId)
    return {
      response: yield* Deferred.await(arrived),
      record,
      settled: Effect.map(record, (r) => r.attempts.length > 0),
    }
  })

  it.effect("an answer after 9 seconds counts", () =>
    Effect.gen(function* () {
      const { record, response, settled } = yield* receiving(false)
      yield* TestClock.adjust("9 seconds")
      response.writeHead(200).end("ok")
      yield* comes(settled)
      const { attempts, error, response_body, response_status, status } = yield* record
      assert.deepStrictEqual([status, error, response_status, response_body], ["delivered", null, 200, "ok"])
      assert.isAtLeast(attempts[0]!.duration_ms, 9_000)
    }))

  it.effect("an answer after 11 seconds is a failure with `timeout` and without a status", () =>
    Effect.gen(function* () {
      const started = yield* now
      const { record, response, settled } = yield* receiving(false)
      yield* TestClock.adjust("11 seconds")
      response.writeHead(200).end("ok")
      yield* comes(settled)
      const { attempts, error, next_retry_at, response_status, status } = yield* record
      assert.deepStrictEqual([status, error, response_status], ["retrying", "timeout", null])
      assert.deepStrictEqual([attempts[0]!.error, attempts[0]!.response_status], ["timeout", null])
      assert.isAtLeast(Date.parse(next_retry_at!), started + 10_000 + minute)
    }))

  it.effect("a 2xx whose body does not end within 10 seconds is a failure", () =>
    Effect.gen(function* () {
      const { record, settled } = yield* receiving(true)
      yield* TestClock.adjust("10100 millis")
      yield* comes(settled)
      const { error, status } = yield* record
      assert.deepStrictEqual([status, error], ["retrying", "timeout"])
    }))
})
