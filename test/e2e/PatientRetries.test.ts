/** A receiver's `Retry-After`, which only a webhook that asks for it honours. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { serve } from "../services/platform/Outbound/LoopbackServers.ts"
import { mailEvent } from "./support/EventFeed.ts"
import { fixture } from "./support/ProgramFixture.ts"
import { deliveries, totals } from "./support/ProgramWebhooks.ts"
import { until } from "./support/Until.ts"

it.live(
  "a retry waits for as long as the receiver asks where its webhook says so, and keeps the table elsewhere",
  () =>
    Effect.gen(function* () {
      const { account, feed, tls } = yield* fixture({ WEBHOOKS_RETRY_DELAYS: Array(8).fill("1 second").join(",") })
      const { api, id } = yield* account()
      const { port } = yield* serve((request, response) => {
        const first = request.headers["x-webhook-attempt"] === "1"
        request.resume().on("end", () => response.writeHead(first ? 503 : 200, { "retry-after": "3600" }).end())
      }, { tls })
      const make = Effect.fnUntraced(function* (path: string, more: object) {
        const url = `https://localhost:${port}${path}`
        const made = yield* api.post("/v1/webhooks/", { url, events: ["email.delivered"], ...more })
        assert.strictEqual(made.status, 201, made.text)
        return made.json
      })
      const patient = yield* make("/patient", { honor_retry_after: true })
      const usual = yield* make("/usual", {})
      assert.deepStrictEqual([patient.honor_retry_after, usual.honor_retry_after], [true, false])
      yield* feed.events([mailEvent(id, "1")])
      yield* until("the usual retry", totals(api, usual.id), ({ delivered }) => delivered === 1)
      const [waiting] = yield* until(
        "the failure",
        deliveries(api, patient.id),
        ([one]) => one?.status === "retrying",
      )
      const { json } = yield* api.get(`/v1/webhook-deliveries/${waiting.id}`)
      const [attempt] = json.attempts
      const wait = Date.parse(json.next_retry_at) - Date.parse(attempt.started_at) - attempt.duration_ms
      assert.isAtLeast(wait, 3_600_000)
      assert.isAtMost(wait, 1.1 * 3_600_000 + 1)

      // The next attempt is the one that a command makes now, and no answer but a failure is asked for a wait.
      assert.strictEqual((yield* api.post(`/v1/webhook-deliveries/${waiting.id}/retry`)).status, 202)
      yield* until("the retry", totals(api, patient.id), ({ delivered }) => delivered === 1)
      assert.isFalse(
        (yield* api.patch(`/v1/webhooks/${patient.id}`, { honor_retry_after: false })).json.honor_retry_after,
      )
    }).pipe(Effect.scoped),
  120_000,
)
