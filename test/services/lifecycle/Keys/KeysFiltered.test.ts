/** Receivers of filtered streams in a rotation: it waits for a consumer only while an event can still reach it. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { lifecycleEventKinds } from "../../../../schemas/identity/LifecycleEventKinds.ts"
import { KeyRotation } from "../../../../services/lifecycle/KeyRotation.ts"
import { lagging } from "../../../../services/lifecycle/Lag.ts"
import { Streams } from "../../../../services/event-streams/Streams.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import { timed } from "../../transfers/TransferFixture.ts"
import { consumer, slow, work } from "./KeysFixture.ts"
import {
  idsIn,
  poll,
  type Receiving,
  receiving,
  stream,
  streaming,
  subjects,
  tellAll,
} from "../../event-streams/StreamFixture.ts"
import { capabilities, grant, type Scene } from "../LifecycleFixture.ts"
import { day } from "../../../support/Fixtures.ts"

const ground = KeyRotation.layer({ deadlineMillis: 14 * day }).pipe(Layer.provideMerge(streaming()))

const wanted = [lifecycleEventKinds["service-grant-approved"].uri]

const nameOf = ({ receiver }: Pick<Receiving, "receiver">) => `${receiver.issuer} ${receiver.clientId}`

/** Polls and acknowledges everything that a stream has. */
const takeAll = Effect.fnUntraced(function* (here: Receiving, streamId: string) {
  yield* poll(here, streamId, { maxEvents: 0, ack: idsIn(yield* poll(here, streamId)) })
})

/** The consumers of a project that the rotation waits for. */
const waits = Effect.fnUntraced(function* ({ project }: Scene) {
  const { transition } = yield* (yield* KeyRotation).list
  return transition?.waiting.find(({ projectId }) => projectId === project)?.consumers ?? []
})

const lagOf = Effect.fnUntraced(function* (here: Receiving) {
  const { wide } = yield* Database
  return (yield* lagging(wide, here.project)).find(({ consumer_id }) => consumer_id === nameOf(here))!.lag_events
})

/** Completes the rotations of projects that earlier tests of this file made, and announces a new one. */
const begin = Effect.gen(function* () {
  const rotation = yield* KeyRotation
  yield* work
  if ((yield* rotation.list).transition !== null) {
    yield* rotation.activate({ force: true })
    yield* work
  }
  yield* rotation.announce(0)
  yield* work
})

/** A receiver whose unfiltered stream delivered events a second ago. */
const given = Effect.gen(function* () {
  const here = yield* receiving
  const streamId = yield* stream(here)
  yield* tellAll(here, subjects(2))
  yield* takeAll(here, streamId)
  yield* TestClock.adjust(1_000)
  return { here, streamId }
})

layer(ground, slow)("A rotation", (it) => {
  it.effect("stops waiting for a consumer whose stream filters, once the stream has passed the announcement", () =>
    Effect.gen(function* () {
      const { change } = yield* Streams
      const { here, streamId } = yield* given
      yield* change(here.receiver, "update", { stream_id: streamId, events_requested: wanted })
      yield* begin
      assert.deepStrictEqual(yield* waits(here), [`stream ${streamId}`])
      assert.isAbove(yield* lagOf(here), 0)
      yield* takeAll(here, streamId)
      yield* work
      assert.deepStrictEqual(yield* waits(here), [])
      assert.strictEqual(yield* lagOf(here), 1)
      yield* takeAll(here, streamId)
      assert.strictEqual(yield* lagOf(here), 0)
    }).pipe(timed))

  it.effect("does not wait for a paused or disabled stream, nor for what such a stream was given before", () =>
    Effect.gen(function* () {
      const { setStatus } = yield* Streams
      const [paused, disabled] = [yield* given, yield* given]
      yield* setStatus(paused.here.receiver, { stream_id: paused.streamId, status: "paused" })
      yield* setStatus(disabled.here.receiver, { stream_id: disabled.streamId, status: "disabled" })
      yield* begin
      for (const { here } of [paused, disabled]) assert.deepStrictEqual(yield* waits(here), [])
    }).pipe(timed))

  it.effect("does not wait for a service whose grant no longer allows reading events", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const { here } = yield* given
      yield* sql`update service_grants set expires_at = 'epoch' where id = ${here.grantId}::uuid`
      yield* grant(here, here.receiver.clientId, ["stream.manage"])
      yield* begin
      assert.deepStrictEqual(yield* waits(here), [])
    }).pipe(timed))

  it.effect("waits for a cursor's acknowledgement beside a filtered stream only if one came since it filters", () =>
    Effect.gen(function* () {
      const { change } = yield* Streams
      const follower = Effect.gen(function* () {
        const made = yield* receiving
        const here: Receiving = { ...made, receiver: { issuer: made.asking.issuer, clientId: made.asking.clientId } }
        yield* grant(here, here.receiver.clientId, [...capabilities, "stream.manage"])
        const streamId = yield* stream(here)
        yield* tellAll(here, subjects(2))
        yield* takeAll(here, streamId)
        const own = yield* consumer(here)
        yield* own.acknowledge
        yield* TestClock.adjust(1_000)
        yield* change(here.receiver, "update", { stream_id: streamId, events_requested: wanted })
        yield* TestClock.adjust(1_000)
        return { here, own, streamId }
      })
      const [former, follows] = [yield* follower, yield* follower]
      yield* tellAll(follows.here, ["late"])
      yield* follows.own.read
      yield* follows.own.acknowledge
      yield* begin
      assert.deepStrictEqual(yield* waits(former.here), [`stream ${former.streamId}`])
      assert.deepStrictEqual(yield* waits(follows.here), [nameOf(follows.here), `stream ${follows.streamId}`])
      for (const { here } of [former, follows]) assert.isAbove(yield* lagOf(here), 0)
      for (const { here, streamId } of [former, follows]) yield* takeAll(here, streamId)
      assert.deepStrictEqual(yield* waits(former.here), [])
      assert.strictEqual(yield* lagOf(former.here), 0)
      assert.deepStrictEqual(yield* waits(follows.here), [nameOf(follows.here)])
      assert.isAbove(yield* lagOf(follows.here), 0)
      yield* follows.own.read
      yield* follows.own.acknowledge
      assert.deepStrictEqual(yield* waits(follows.here), [])
      assert.strictEqual(yield* lagOf(follows.here), 0)
    }).pipe(timed))
})
