/** The claim on a stream: one process pushes to it at a time, through freezes, stops and slow receivers. */
import { assert, layer } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Fiber, Layer, Queue, Scope } from "effect"
import { StreamPush } from "../../../services/event-streams/StreamPush.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { until } from "../../e2e/support/Until.ts"
import { serve } from "../platform/Outbound/LoopbackServers.ts"
import {
  placesOf,
  push,
  pushed,
  receiving,
  restsAt,
  rowOf,
  seen,
  stream,
  streaming,
  subjects,
  tellAll,
} from "./StreamFixture.ts"
import { publicUrl } from "../lifecycle/LifecycleFixture.ts"

layer(streaming({ failuresInARow: 10_000 }), { excludeTestServices: true })("Claims of streams", (it) => {
  it.effect("one pusher serves a stream at a time, and a frozen one sends nothing after its lease", () =>
    Effect.gen(function* () {
      const here = yield* receiving
      const held: Array<() => void> = []
      const { arrivals, heard, url } = yield* pushed((_, nth) =>
        nth > 1 ? 202 : new Promise((resolve) => held.push(() => resolve(202)))
      )
      const streamId = yield* stream(here, push(url()))
      const ids = yield* tellAll(here, subjects(3))
      const one = yield* StreamPush
      const other = yield* Layer.build(StreamPush.layer(publicUrl, { leaseMillis: 20_000 }))
      const two = Context.get(other, StreamPush)
      yield* one.turn
      yield* until("the first", Effect.sync(() => arrivals), ({ length }) => length === 1)
      const { claim } = yield* rowOf(streamId)
      assert.isFalse(yield* two.turn)
      assert.strictEqual((yield* rowOf(streamId)).claim, claim)

      // The first pusher counts as frozen: its lease is ended, and another takes the stream.
      const { sql } = yield* Database
      const over = sql`update lifecycle_streams set lease_until = '2001-01-01' where id = ${streamId}::uuid`
      // The first pusher may renew its lease at this moment: end it until the claim is gone.
      yield* until("it is free", Effect.andThen(Effect.andThen(over, two.free), rowOf(streamId)), (row) => !row.claim)
      const taking = yield* Effect.forkChild(Effect.repeat(two.turn, { until: (more) => !more }))
      yield* Fiber.join(taking)
      const told = yield* Queue.takeN(heard, 3)
      assert.deepStrictEqual(told.map(({ jti }) => jti), [...ids])
      held.forEach((go) => go())
      yield* Queue.take(heard)
      yield* restsAt(streamId, (yield* placesOf(here)).head)
      assert.deepStrictEqual(arrivals.map(({ jti }) => jti), [ids[0], ...ids])
    }))

  it.effect("a stopping pusher releases its streams and records what their receivers accepted", () =>
    Effect.gen(function* () {
      const here = yield* receiving
      const { arrivals, heard, url } = yield* pushed()
      const streamId = yield* stream(here, push(url()))
      const before = (yield* placesOf(here)).head
      yield* tellAll(here, subjects(2))
      const scope = yield* Scope.make()
      const built = yield* Layer.buildWithScope(StreamPush.layer(publicUrl, { warmMillis: 600_000 }), scope)
      yield* Context.get(built, StreamPush).turn
      yield* Queue.takeN(heard, 2)
      assert.isNotNull((yield* seen(streamId, ({ position }) => position === before + 2)).claim)
      yield* Scope.close(scope, Exit.void)
      assert.isNull((yield* rowOf(streamId)).claim)

      // Stopped while a POST is open: whether the receiver accepted it is unknown.
      const third = yield* pushed(() => "silence")
      const slow = yield* stream(here, push(third.url()))
      yield* tellAll(here, subjects(1))
      const other = yield* Scope.make()
      const stopping = yield* Layer.buildWithScope(StreamPush.layer(publicUrl), other)
      yield* Context.get(stopping, StreamPush).turn
      yield* until("it", Effect.sync(() => third.arrivals), ({ length }) => length === 1)
      yield* Scope.close(other, Exit.void)
      const { claim, position } = yield* rowOf(slow)
      assert.deepStrictEqual([claim, position], [null, before + 2])
      assert.isAtLeast(arrivals.length, 2)
    }))
})

// Longer than a busy machine delays the renewal of a lease.
layer(streaming({ leaseMillis: 6_000 }), { excludeTestServices: true })(
  "A receiver that takes longer than a lease",
  (it) => {
    it.effect("is pushed to by one process all the while", () =>
      Effect.gen(function* () {
        const here = yield* receiving
        const answer = yield* Deferred.make<number>()
        const { arrivals, heard, url } = yield* pushed(() => Effect.runPromise(Deferred.await(answer)))
        const streamId = yield* stream(here, push(url()))
        yield* tellAll(here, subjects(1))
        const one = yield* StreamPush
        const two = Context.get(yield* Layer.build(StreamPush.layer(publicUrl, { leaseMillis: 3_000 })), StreamPush)
        yield* one.turn
        const { claim, lease_until } = yield* rowOf(streamId)
        const other = Effect.andThen(two.free, two.turn)
        yield* until(
          "a third lease",
          Effect.andThen(other, rowOf(streamId)),
          (row) => row.lease_until!.getTime() > lease_until!.getTime() + 3_000,
        )
        assert.strictEqual((yield* rowOf(streamId)).claim, claim)
        yield* Deferred.succeed(answer, 202)
        yield* Queue.take(heard)
        yield* restsAt(streamId, (yield* placesOf(here)).head)
        assert.lengthOf(arrivals, 1)
      }))

    it.effect("has its POST cut once another process has the claim", () =>
      Effect.gen(function* () {
        const here = yield* receiving
        const { sql } = yield* Database
        const [begun, cut] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
        const { port } = yield* serve((_, response) => {
          response.on("close", () => Deferred.doneUnsafe(cut, Effect.void))
          Deferred.doneUnsafe(begun, Effect.void)
        })
        const streamId = yield* stream(here, push(`http://127.0.0.1:${port}/`))
        const before = (yield* rowOf(streamId)).position
        yield* tellAll(here, subjects(1))
        yield* (yield* StreamPush).turn
        yield* Deferred.await(begun)
        yield* sql`
        update lifecycle_streams set claim = nextval('claims'), lease_until = '2999-01-01'
        where id = ${streamId}::uuid`
        yield* Deferred.await(cut)
        const row = yield* rowOf(streamId)
        assert.deepStrictEqual([row.position, row.last_error], [before, null])
      }))
  },
)
