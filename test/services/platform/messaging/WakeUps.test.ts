import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Fiber, Layer, Queue } from "effect"
import { WakeUps } from "../../../../services/platform/messaging/WakeUps.ts"
import { Bus } from "../../../../services/platform/messaging/Bus.ts"
import { sizeOf } from "../../../support/SizeOf.ts"
import { TestBus } from "../../../support/TestBus.ts"
import { ownBroker } from "./OwnBroker.ts"

const longMillis = 20_000

describe("WakeUps", () => {
  it.live("wakes every waiter here, keeps a signal for a busy one, and merges several signals", () =>
    Effect.gen(function* () {
      const broker = yield* ownBroker
      yield* Effect.gen(function* () {
        // Without a broker: signals within this process need none.
        const wakeUps = yield* WakeUps
        const one = yield* wakeUps.waiter("a")
        const two = yield* wakeUps.waiter("a")
        const other = yield* wakeUps.waiter("b")
        const waiting = yield* Effect.forkChild(wakeUps.wait("a", longMillis), { startImmediately: true })
        yield* wakeUps.notify("a")
        wakeUps.notifyUnsafe("a")
        const before = performance.now()
        yield* Effect.all([one.wait(longMillis), two.wait(longMillis), Fiber.join(waiting)])
        assert.isBelow(performance.now() - before, longMillis / 2)
        const again = performance.now()
        yield* Effect.all([one.wait(60), other.wait(60)])
        assert.isAtLeast(performance.now() - again, 100)
      }).pipe(Effect.scoped, Effect.provide(WakeUps.layer.pipe(Layer.provide(Bus.layer({ url: broker.url })))))
    }).pipe(Effect.scoped))

  it.live("keeps nothing for a key once it has no waiter", () =>
    Effect.gen(function* () {
      const { waiter, notify, wait } = yield* WakeUps
      const keys = Array.from({ length: 1_000 }, (_, n) => `project ${n}`)
      yield* Effect.scoped(Effect.gen(function* () {
        const waiters = yield* Effect.forEach(keys, (key) => waiter("t", key))
        assert.strictEqual(yield* sizeOf("waiters"), keys.length)
        yield* notify("t", keys)
        yield* Effect.forEach(waiters, (own) => own.wait(longMillis))
      }))
      const interrupted = yield* Effect.forkChild(wait("t", longMillis), { startImmediately: true })
      assert.strictEqual(yield* sizeOf("waiters"), 1)
      yield* Fiber.interrupt(interrupted)
      assert.strictEqual(yield* sizeOf("waiters"), 0)
    }).pipe(Effect.provide(
      Layer.fresh(WakeUps.layer).pipe(
        Layer.provide(Layer.unwrap(Effect.map(TestBus.make, ({ url }) => Bus.layer({ url })))),
      ),
    )))

  it.live("wakes the waiters of its keys and those of all keys; without keys it wakes everyone", () =>
    Effect.gen(function* () {
      const { url } = yield* TestBus.make
      const process = Effect.map(
        Layer.build(Layer.fresh(WakeUps.layer.pipe(Layer.provide(Layer.fresh(Bus.layer({ url })))))),
        (context) => Context.get(context, WakeUps),
      )
      const [here, there] = [yield* process, yield* process]
      // Signals until the other process is connected.
      yield* Effect.raceFirst(
        Effect.flatMap(there.waiter("ready"), (waiter) => waiter.wait(longMillis)),
        Effect.forever(Effect.andThen(here.notify("ready"), Effect.sleep(20))),
      )
      for (const wakeUps of [here, there]) {
        // A topic of each round: the last signal of one round may reach the other process during the next.
        const topic = wakeUps === here ? "here" : "there"
        const one = yield* wakeUps.waiter(topic, "one")
        const two = yield* wakeUps.waiter(topic, "two")
        const all = yield* wakeUps.waiter(topic)
        const after = yield* wakeUps.waiter(`after-${topic}`)
        const heard = Effect.fnUntraced(function* (keys: ReadonlyArray<string> | undefined, whom: typeof all) {
          yield* here.notify(topic, keys)
          yield* all.wait(longMillis)
          const before = performance.now()
          yield* whom.wait(longMillis)
          assert.isBelow(performance.now() - before, longMillis / 2)
        })
        // Signals arrive in their order: a waiter that a later one finds asleep was not woken by those before it.
        const silent = Effect.fnUntraced(function* (whom: typeof all) {
          yield* here.notify(`after-${topic}`)
          const first = yield* Effect.raceFirst(
            Effect.as(whom.wait(longMillis), "the waiter"),
            Effect.as(after.wait(longMillis), "the later signal"),
          )
          assert.strictEqual(first, "the later signal")
        })
        yield* heard(["one"], one)
        yield* silent(two)
        yield* heard(["two", "other"], two)
        yield* silent(one)
        yield* heard(undefined, one)
        yield* two.wait(longMillis)
        yield* heard(Array.from({ length: 150 }, (_, i) => `key-${i}`).concat("one"), one)
        // With more keys than one message names, every waiter of another process is woken.
        yield* wakeUps === here ? silent(two) : two.wait(longMillis)
      }
    }).pipe(Effect.scoped))

  it.live("wakes other processes through the broker, with one message for many signals", () =>
    Effect.gen(function* () {
      const { url } = yield* TestBus.make
      const process = Effect.map(
        Layer.build(Layer.fresh(WakeUps.layer.pipe(Layer.provideMerge(Layer.fresh(Bus.layer({ url })))))),
        (context) => ({ wakeUps: Context.get(context, WakeUps), bus: Context.get(context, Bus) }),
      )
      const here = yield* process
      const there = yield* process
      const heard = yield* Queue.unbounded<string>()
      yield* there.bus.subscribeCore("bell.v1.*", (_, subject) => void Queue.offerUnsafe(heard, subject))
      const waiter = yield* there.wakeUps.waiter("outbox")
      // Signals until the other process is connected and receives one.
      const before = performance.now()
      yield* Effect.raceFirst(
        waiter.wait(longMillis),
        Effect.forever(Effect.andThen(here.wakeUps.notify("outbox"), Effect.sleep(20))),
      )
      assert.isBelow(performance.now() - before, 10_000)
      yield* here.wakeUps.notify("settled")
      yield* Effect.repeat(Queue.take(heard), { until: (subject) => subject === "bell.v1.settled" })
      for (let i = 0; i < 1_000; i++) here.wakeUps.notifyUnsafe("many")
      yield* here.wakeUps.notify("last")
      const subjects: Array<string> = []
      yield* Effect.repeat(Effect.tap(Queue.take(heard), (s) => Effect.sync(() => subjects.push(s))), {
        until: (subject) => subject === "bell.v1.last",
      })
      // The first signal goes out at once, all others together.
      assert.isAtMost(subjects.length, 3)
      assert.strictEqual(subjects[0], "bell.v1.many")
    }).pipe(Effect.scoped))
})
