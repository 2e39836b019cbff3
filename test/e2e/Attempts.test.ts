/** Eight attempts and the dead letter queue, as seen by a receiver that refuses everything. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { mailEvent } from "./support/EventFeed.ts"
import { receiver } from "./support/Receiver.ts"
import { until } from "./support/Until.ts"
import { deliveries, hook, totals } from "./support/ProgramWebhooks.ts"
import { fixture } from "./support/ProgramFixture.ts"

const eight = [1, 2, 3, 4, 5, 6, 7, 8]

describe("a delivery that fails", () => {
  it.live(
    "is tried eight times with the same bytes, then stays in the dead letter queue until a replay",
    () =>
      Effect.gen(function* () {
        const around = yield* fixture({ WEBHOOKS_RETRY_DELAYS: Array(8).fill("30 millis").join(",") })
        const { api, id } = yield* around.account()
        let willing = false
        const target = yield* receiver(around.tls, () => willing ? 200 : 503)
        const { id: hookId, path } = yield* hook(api, target, "/eight", ["email.bounced"])
        const event = mailEvent(id, "1", "email.bounced")
        yield* around.feed.events([event])

        const dead = yield* until(
          "the dead letter",
          deliveries(api, hookId, "dead_letter"),
          (found) => found.length === 1,
        )
        const seen = [...target.at(path)]
        assert.deepStrictEqual(seen.map((arrival) => arrival.attempt), eight)
        assert.deepStrictEqual(seen.map((arrival) => arrival.fault), Array(8).fill(null))
        assert.strictEqual(new Set(seen.map((arrival) => arrival.body)).size, 1)
        assert.strictEqual(new Set(seen.map((arrival) => arrival.id)).size, 1)
        const { email_id, event: type, metadata, recipient, timestamp } = event
        const payload = { event: type, email_id, recipient, timestamp, metadata }
        assert.deepStrictEqual(JSON.parse(seen[0]!.body), payload)
        for (const { headers } of seen) {
          assert.strictEqual(headers["content-type"], "application/json")
          assert.strictEqual(headers["x-webhook-event"], "email.bounced")
          assert.strictEqual(headers["x-webhook-delivery"], seen[0]!.id)
        }
        // Never earlier than the table has it.
        for (const [i, { at }] of seen.slice(1).entries()) assert.isAtLeast(at - seen[i]!.at, 29)

        const record = (yield* api.get(`/v1/webhook-deliveries/${dead[0].id}`)).json
        assert.deepInclude(record, {
          id: seen[0]!.id,
          webhook_id: hookId,
          event_type: "email.bounced",
          status: "dead_letter",
          response_status: 503,
          attempt: 8,
          next_retry_at: null,
          payload,
          response_body: "answer 503",
          endpoint_url: target.url(path),
        })
        assert.deepStrictEqual(
          record.attempts.map((
            a: { cycle: number; attempt: number; response_status: number },
          ) => [a.cycle, a.attempt, a.response_status]),
          eight.map((n) => [1, n, 503]),
        )

        // A second event goes through all attempts meanwhile: a ninth attempt of the first would have come before its
        // end.
        yield* around.feed.events([mailEvent(id, "2", "email.bounced")])
        yield* until("the second", totals(api, hookId), ({ dead_letter }) => dead_letter === 2)
        assert.strictEqual(target.at(path).filter((arrival) => arrival.id === seen[0]!.id).length, 8)

        willing = true
        const replayed = yield* api.post(`/v1/webhook-deliveries/${dead[0].id}/replay`)
        assert.strictEqual(replayed.status, 202)
        yield* until("the replay", totals(api, hookId), ({ delivered }) => delivered === 1)
        const [last] = target.at(path).slice(-1)
        assert.deepInclude(last, { id: seen[0]!.id, attempt: 1, fault: null, body: seen[0]!.body })
        const after = (yield* api.get(`/v1/webhooks/${hookId}/deliveries/${dead[0].id}`)).json
        assert.deepInclude(after, { status: "delivered", attempt: 1, response_status: 200, error: null })
        assert.deepInclude(after.attempts.at(-1), { cycle: 2, attempt: 1, response_status: 200 })
        assert.strictEqual(after.attempts.length, 9)

        const since = new Date(Date.now() - 60_000).toISOString()
        const bulk = yield* api.post(`/v1/webhooks/${hookId}/replay`, { since })
        assert.strictEqual(bulk.status, 202)
        assert.strictEqual(bulk.json.replayed, 1)
        yield* until("both", totals(api, hookId), ({ delivered }) => delivered === 2)
        assert.deepStrictEqual(yield* totals(api, hookId), {
          all: 2,
          pending: 0,
          retrying: 0,
          delivered: 2,
          dead_letter: 0,
          cancelled: 0,
        })
      }).pipe(Effect.scoped),
    240_000,
  )
})
