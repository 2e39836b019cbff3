/** Delivery and lag of a receiver whose streams filter events: only the events that it asked for count. */
import { assert, layer } from "@effect/vitest"
import { Effect, Queue } from "effect"
import { lifecycleEventKinds } from "../../../schemas/identity/LifecycleEventKinds.ts"
import { ServiceGrants } from "../../../services/access/ServiceGrants.ts"
import { lagging } from "../../../services/lifecycle/Lag.ts"
import { Streams } from "../../../services/event-streams/Streams.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { until } from "../../e2e/support/Until.ts"
import { issuer } from "../../support/TestIdentity.ts"
import {
  idsIn,
  placesOf,
  poll,
  push,
  pushed,
  pushing,
  type Receiving,
  receiving,
  rowOf,
  stream,
  streaming,
  subjects,
  tellAll,
} from "../event-streams/StreamFixture.ts"
import { grant, signAll } from "./LifecycleFixture.ts"

const wanted = { events_requested: [lifecycleEventKinds["service-grant-approved"].uri] }

/** The delivery states of a project's grants, by service. */
const deliveries = Effect.fnUntraced(function* ({ owner: personId, project: projectId }: Receiving) {
  const grants = yield* (yield* ServiceGrants).list({ personId, projectId, limit: 100, afterId: null })
  return new Map(grants.map(({ delivery, service_id }) => [service_id, delivery]))
})

const lagOf = Effect.fnUntraced(function* ({ project, receiver }: Receiving) {
  const { wide } = yield* Database
  const { delivered_position, lag_events } = (yield* lagging(wide, project)).find(({ consumer_id }) =>
    consumer_id === `${receiver.issuer} ${receiver.clientId}`
  )!
  return { delivered_position, lag_events }
})

const approved = (here: Receiving, service: string) => Effect.andThen(grant(here, service, ["events.read"]), signAll)

layer(streaming(), { excludeTestServices: true })("A filtered stream", (it) => {
  it.effect("pushed: an event that was sent is delivered, a filtered one is not, and neither counts as lag", () =>
    Effect.gen(function* () {
      yield* pushing
      const here = yield* receiving
      const { heard, url } = yield* pushed()
      const streamId = yield* stream(here, { ...push(url()), ...wanted })
      const before = (yield* placesOf(here)).head
      assert.deepStrictEqual(yield* lagOf(here), { delivered_position: before, lag_events: 0 })
      yield* approved(here, "shop")
      yield* Queue.take(heard)
      yield* tellAll(here, subjects(3))
      const { head } = yield* placesOf(here)
      yield* until("the stream", rowOf(streamId), ({ position }) => position === head)
      const found = yield* deliveries(here)
      assert.deepInclude(found.get("shop"), { state: "delivered", attempts: 1 })
      assert.strictEqual(found.get(here.receiver.clientId)!.state, "queued")
      // A filtered stream promises no position: the consumer's own row stays empty.
      assert.isNull((yield* placesOf(here)).delivered)
      assert.deepStrictEqual(yield* lagOf(here), { delivered_position: head, lag_events: 0 })
    }))

  it.effect("polled: an event is delivered once acknowledged; of several streams the slowest gives the lag", () =>
    Effect.gen(function* () {
      const here = yield* receiving
      const streamId = yield* stream(here, wanted)
      const before = (yield* placesOf(here)).head
      yield* approved(here, "shop")
      const { sets } = yield* poll(here, streamId)
      assert.strictEqual((yield* deliveries(here)).get("shop")!.state, "queued")
      assert.deepStrictEqual(yield* lagOf(here), { delivered_position: before, lag_events: 1 })
      yield* poll(here, streamId, { maxEvents: 0, ack: Object.keys(sets) })
      assert.strictEqual((yield* deliveries(here)).get("shop")!.state, "delivered")
      assert.deepStrictEqual(yield* lagOf(here), { delivered_position: before + 1, lag_events: 0 })
      const behind = yield* stream(here)
      yield* tellAll(here, subjects(2))
      yield* poll(here, streamId)
      assert.deepStrictEqual(yield* lagOf(here), { delivered_position: before + 1, lag_events: 2 })
      yield* poll(here, behind, { maxEvents: 0, ack: Object.keys((yield* poll(here, behind)).sets) })
      assert.deepStrictEqual(yield* lagOf(here), { delivered_position: before + 3, lag_events: 0 })
    }))

  it.effect("a stream passes over any number of filtered events and never reports them as delivered", () =>
    Effect.gen(function* () {
      const here = yield* receiving
      const streamId = yield* stream(here, { events_requested: [lifecycleEventKinds["account-disabled"].uri] })
      const before = (yield* placesOf(here)).head
      yield* tellAll(here, subjects(550))
      const [a, b] = yield* tellAll(here, ["gone", "gone too"], "account-disabled")
      yield* tellAll(here, subjects(3))
      const { say } = yield* Streams
      const page = yield* poll(here, streamId)
      assert.deepStrictEqual([idsIn(page), page.moreAvailable], [[a, b], false])
      assert.strictEqual((yield* rowOf(streamId)).position, before + 550)
      yield* say(here.receiver, streamId, { format: "iss_sub", iss: issuer, sub: "gone" }, false)
      assert.deepStrictEqual(idsIn(yield* poll(here, streamId)), [b])
      assert.deepStrictEqual(yield* poll(here, streamId, { ack: [b!] }), { sets: {}, moreAvailable: false })
      assert.strictEqual((yield* rowOf(streamId)).position, before + 555)
      assert.isNull((yield* placesOf(here)).delivered)
    }))
})
