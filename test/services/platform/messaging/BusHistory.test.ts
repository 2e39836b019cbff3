import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Queue, type Scope } from "effect"
import { Bus } from "../../../../services/platform/messaging/Bus.ts"
import { TestBus } from "../../../support/TestBus.ts"

const subject = "intake.v1.mail-events.delivered"

const onOwn = <A, E>(use: Effect.Effect<A, E, Bus | Scope.Scope>) =>
  Effect.provide(Effect.scoped(use), Layer.unwrap(Effect.map(TestBus.make, ({ url }) => Bus.layer({ url }))))

const say = (text: string) => Effect.flatMap(Bus, (bus) => Effect.eventually(bus.publish(subject, text)))

const texts = Effect.fnUntraced(function* (sinceMillis: number) {
  const found: Array<string> = []
  const length = yield* (yield* Bus).history("EVENTS", sinceMillis, (messages) =>
    Effect.sync(() => {
      for (const { data } of messages) found.push(new TextDecoder().decode(data))
    }))
  assert.strictEqual(length, found.length)
  return found
})

describe("the history of a stream", () => {
  it.live("is read from a moment on, in order, also what was consumed before", () =>
    onOwn(Effect.gen(function* () {
      assert.deepStrictEqual(yield* texts(0).pipe(Effect.eventually), [])
      const many = Array.from({ length: 1_200 }, (_, n) => String(n))
      yield* Effect.forEach(many, say, { concurrency: 100 })
      const before = yield* texts(0)
      assert.deepStrictEqual([...before].sort(), [...many].sort())
      assert.deepStrictEqual(yield* texts(Date.now() + 60_000), [])
    })))

  it.live("is redelivered after a rewind, and unacknowledged messages stay owed", () =>
    onOwn(Effect.gen(function* () {
      const bus = yield* Bus
      const got = yield* Queue.unbounded<string>()
      let answers = false
      yield* bus.consume({
        stream: "EVENTS",
        durable: "test",
        batch: 10,
        ackWaitMillis: 30_000,
        maxAckPending: 100,
        handler: (messages) =>
          Effect.sync(() => {
            for (const message of messages) {
              if (answers) message.ack()
              Queue.offerUnsafe(got, message.text)
            }
          }),
      })
      yield* say("owed")
      assert.strictEqual(yield* Queue.take(got), "owed")
      assert.strictEqual(yield* bus.unanswered("EVENTS"), 1)
      answers = true
      // A moment later than the owed message, which is redelivered all the same.
      yield* bus.rewind("EVENTS", Date.now() + 60_000)
      assert.strictEqual(yield* Queue.take(got), "owed")
      yield* say("new")
      assert.strictEqual(yield* Queue.take(got), "new")
      const settled = Effect.repeat(bus.unanswered("EVENTS"), { until: (n) => n === 0 })
      yield* settled
      yield* bus.rewind("EVENTS", 0)
      assert.deepStrictEqual([yield* Queue.take(got), yield* Queue.take(got)], ["owed", "new"])
      yield* settled
    })))
})
