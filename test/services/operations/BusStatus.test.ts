import { assert, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { BusReport } from "../../../schemas/identity/StreamReportView.ts"
import { streamNames } from "../../../schemas/bus/BusStreams.ts"
import { Bus } from "../../../services/platform/messaging/Bus.ts"
import { person } from "../../support/TestIdentity.ts"
import { management } from "../../support/TestManagement.ts"
import { bearer } from "../../support/TestTokens.ts"
import { send } from "../../src/http/identity/IdentityClient.ts"

const decoded = Schema.decodeUnknownSync(BusReport)

layer(management({ ROLES: "api" }), { excludeTestServices: true, timeout: "2 minutes" })("Streams over HTTP", (it) => {
  it.effect("show what they hold and how far each consumer is", () =>
    Effect.gen(function* () {
      const bus = yield* Bus
      const oz = yield* bearer(yield* person({ operator: true }))
      const report = Effect.map(send("GET", "/v1/operations/streams", oz), ({ body }) => decoded(body))
      const of = (stream: string) => Effect.map(report, ({ items }) => items?.find((one) => one.stream === stream))
      yield* Effect.eventually(bus.heal)
      assert.sameMembers((yield* report).items!.map(({ stream }) => stream), [...streamNames])
      assert.deepInclude(yield* of("RESULTS"), {
        messages: 0,
        last_seq: 0,
        first_at: null,
        last_at: null,
        consumers: [],
      })

      for (const n of [1, 2, 3]) yield* bus.publish("webhooks.v1.attempts.x", `{"n":${n}}`)
      // It gets the first two and acknowledges none.
      yield* bus.consume({
        stream: "RESULTS",
        durable: "auditor",
        batch: 2,
        ackWaitMillis: 30_000,
        maxAckPending: 2,
        handler: () => Effect.void,
      })
      const found = yield* Effect.repeat(of("RESULTS"), { until: (one) => one?.consumers?.[0]?.ack_pending === 2 })
      assert.deepInclude(found, { messages: 3, first_seq: 1, last_seq: 3 })
      assert.isAbove(found!.bytes, 0)
      assert.isAtMost(Date.parse(found!.first_at!), Date.parse(found!.last_at!))
      const auditor = { name: "auditor", pending: 1, ack_pending: 2, redelivered: 0, behind_since: found!.first_at }
      assert.deepStrictEqual(found!.consumers, [auditor])
    }))

  it.effect("a consumer that acknowledges everything is behind by nothing", () =>
    Effect.gen(function* () {
      const bus = yield* Bus
      const oz = yield* bearer(yield* person({ operator: true }))
      yield* bus.publish("notifications.v1.behind.domain", `{"n":1}`)
      yield* bus.consume({
        stream: "NOTIFICATIONS",
        durable: "prompt",
        batch: 2,
        ackWaitMillis: 30_000,
        maxAckPending: 2,
        handler: (messages) => Effect.sync(() => messages.forEach((one) => one.ack())),
      })
      const prompt = Effect.map(
        send("GET", "/v1/operations/streams", oz),
        ({ body }) =>
          decoded(body).items!.find(({ stream }) => stream === "NOTIFICATIONS")!.consumers!
            .find(({ name }) => name === "prompt"),
      )
      const done = yield* Effect.repeat(prompt, { until: (one) => one?.pending === 0 && one.ack_pending === 0 })
      assert.isNull(done!.behind_since)
    }))
})
