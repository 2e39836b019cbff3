import { assert, layer } from "@effect/vitest"
import { AckPolicy, DeliverPolicy, jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { Effect, Redacted, Schema } from "effect"
import { BusReport } from "../../../schemas/identity/StreamReportView.ts"
import { streamNames } from "../../../schemas/bus/BusStreams.ts"
import { Bus } from "../../../services/platform/messaging/Bus.ts"
import { oldestOf } from "../../../services/platform/messaging/Bus/StreamStatus.ts"
import { TestBus } from "../../support/TestBus.ts"
import { person } from "../../support/TestIdentity.ts"
import { management } from "../../support/TestManagement.ts"
import { bearer } from "../../support/TestTokens.ts"
import { send } from "../../src/http/identity/IdentityClient.ts"

/** The broker, as another program of the same account asks it. */
const brokerManager = (url: string) =>
  Effect.acquireRelease(
    Effect.promise(() => {
      const { password, port, username } = new URL(url)
      return connect({ servers: `127.0.0.1:${port}`, user: username, pass: password })
    }),
    (nc) => Effect.promise(() => nc.close()),
  ).pipe(Effect.flatMap((nc) => Effect.promise(() => jetstreamManager(nc))))

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

  it.effect("a consumer that others made is behind since its own oldest message, or says nothing", () =>
    Effect.gen(function* () {
      const bus = yield* Bus
      const oz = yield* bearer(yield* person({ operator: true }))
      const { url } = yield* TestBus
      yield* bus.publish("transfers.v1.old.x", `{"n":1}`)
      yield* bus.publish("transfers.v1.old.x", `{"n":2}`)
      const manager = yield* brokerManager(Redacted.value(url))
      const stream = "TRANSFERS"
      const policies = {
        all: { deliver_policy: DeliverPolicy.All },
        fresh: { deliver_policy: DeliverPolicy.New },
        second: { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: 2 },
        each: { deliver_policy: DeliverPolicy.LastPerSubject, filter_subject: "transfers.>" },
      }
      for (const [durable_name, config] of Object.entries(policies)) {
        yield* Effect.promise(() =>
          manager.consumers.add(stream, { durable_name, ack_policy: AckPolicy.Explicit, ...config })
        )
      }
      yield* bus.publish("transfers.v1.new.x", `{"n":3}`)
      const stored = yield* Effect.promise(() =>
        Promise.all([1, 2, 3].map((seq) => manager.streams.getMessage(stream, { seq })))
      )
      const [first, second, third] = stored.map((one) => one!.time.toISOString())
      const since = Effect.map(send("GET", "/v1/operations/streams", oz), ({ body }) => {
        const { consumers } = decoded(body).items!.find((one) => one.stream === stream)!
        return Object.fromEntries(consumers!.map((one) => [one.name, one.behind_since]))
      })
      assert.deepInclude(yield* since, { all: first, fresh: third, second, each: null })
      // It has got its message: the broker does not tell any more which one came first.
      const fresh = yield* Effect.promise(() => manager.jetstream().consumers.get(stream, "fresh"))
      const message = yield* Effect.promise(() => fresh.next())
      assert.isNull((yield* since)["fresh"])
      yield* Effect.promise(() => message!.ackAck())
      yield* bus.publish("transfers.v1.new.x", `{"n":4}`)
      const fourth = yield* Effect.promise(() => manager.streams.getMessage(stream, { seq: 4 }))
      assert.strictEqual((yield* since)["fresh"], fourth!.time.toISOString())
      // Brokers from 2.10 on take several filters.
      const position = { ack_floor: { consumer_seq: 1, stream_seq: 1 }, delivered: { consumer_seq: 1, stream_seq: 1 } }
      const filtered = (filter_subjects: Array<string>) =>
        oldestOf({ ...position, config: { deliver_policy: DeliverPolicy.All, filter_subjects } })
      assert.deepStrictEqual(filtered(["a"]), { seq: 2, next_by_subj: "a" })
      assert.isNull(filtered(["a", "b"]))
    }))
})
