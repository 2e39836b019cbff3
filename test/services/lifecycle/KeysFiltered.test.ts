/** Receivers of streams in a change of keys: one is waited for only while something that it does can move it. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { factKinds } from "../../../schemas/identity/Facts.ts"
import { KeyRotation } from "../../../services/lifecycle/KeyRotation.ts"
import { lagging } from "../../../services/lifecycle/Lag.ts"
import { Streams } from "../../../services/event-streams/Streams.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { timed } from "../transfers/TransferWorld.ts"
import { consumer, day, slow, work } from "./KeysWorld.ts"
import { idsIn, poll, type Receiving, receiving, stream, streaming, subjects, tellAll } from "./StreamWorld.ts"
import { capabilities, grant, type Scene } from "./World.ts"

const ground = KeyRotation.layer({ deadlineMillis: 14 * day }).pipe(Layer.provideMerge(streaming()))

const wanted = [factKinds["service-grant-approved"].uri]

const nameOf = ({ receiver }: Pick<Receiving, "receiver">) => `${receiver.issuer} ${receiver.clientId}`

/** Takes everything that a stream has to give. */
const takeAll = Effect.fnUntraced(function* (here: Receiving, streamId: string) {
  yield* poll(here, streamId, { maxEvents: 0, ack: idsIn(yield* poll(here, streamId)) })
})

/** Whom the transition waits for of a project. */
const waits = Effect.fnUntraced(function* ({ project }: Scene) {
  const { transition } = yield* (yield* KeyRotation).list
  return transition?.waiting.find(({ projectId }) => projectId === project)?.consumers ?? []
})

const lagOf = Effect.fnUntraced(function* (here: Receiving) {
  const { wide } = yield* Database
  return (yield* lagging(wide, here.project)).find(({ consumer_id }) => consumer_id === nameOf(here))!.lag_events
})

/** The keys of projects that earlier tests of this file left behind are moved on first. */
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

/** A receiver whose unfiltered stream has been given something; a moment later it has changed nothing yet. */
const given = Effect.gen(function* () {
  const here = yield* receiving
  const streamId = yield* stream(here)
  yield* tellAll(here, subjects(2))
  yield* takeAll(here, streamId)
  yield* TestClock.adjust(1_000)
  return { here, streamId }
})

layer(ground, slow)("A change of keys", (it) => {
  it.effect("goes on without the consumer of a stream that leaves something out since, once the stream has come by", () =>
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

  it.effect("waits for neither a stream that is stopped nor what it was given before", () =>
    Effect.gen(function* () {
      const { setStatus } = yield* Streams
      const [paused, disabled] = [yield* given, yield* given]
      yield* setStatus(paused.here.receiver, { stream_id: paused.streamId, status: "paused" })
      yield* setStatus(disabled.here.receiver, { stream_id: disabled.streamId, status: "disabled" })
      yield* begin
      for (const { here } of [paused, disabled]) assert.deepStrictEqual(yield* waits(here), [])
    }).pipe(timed))

  it.effect("waits for no service whose grant lets it read no events any more", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const { here } = yield* given
      yield* sql`update service_grants set expires_at = 'epoch' where id = ${here.grantId}::uuid`
      yield* grant(here, here.receiver.clientId, ["stream.manage"])
      yield* begin
      assert.deepStrictEqual(yield* waits(here), [])
    }).pipe(timed))

  it.effect("waits for an acknowledgement beside such a stream only where there was one since the stream filters", () =>
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
