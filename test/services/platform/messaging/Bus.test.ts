import { assert, describe, it } from "@effect/vitest"
import { DiscardPolicy, jetstreamManager, RetentionPolicy, StorageType } from "@nats-io/jetstream"
import { connect, nanos } from "@nats-io/transport-node"
import { Deferred, Effect, Latch, Layer, Queue, Redacted, Result, Scope } from "effect"
import { streamNames } from "../../../../schemas/bus/BusStreams.ts"
import type { BusConsumer, BusMessage } from "../../../../services/platform/messaging/Bus.ts"
import { Bus } from "../../../../services/platform/messaging/Bus.ts"
import { TestBus } from "../../../support/TestBus.ts"
import { ownBroker } from "./OwnBroker.ts"

const subject = "intake.v1.mail-events.delivered"

const manager = (url: Redacted.Redacted) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        const { host, username, password } = new URL(Redacted.value(url))
        const credential = password === "" ? { token: username } : { user: username, pass: password }
        const nc = await connect({ servers: host, ...credential })
        return { nc, jsm: await jetstreamManager(nc) }
      }),
      ({ nc }) => Effect.promise(() => nc.close()),
    ),
    ({ jsm }) => jsm,
  )

const events = (handler: BusConsumer<never>["handler"], more: Partial<BusConsumer<never>> = {}) => ({
  stream: "EVENTS" as const,
  durable: "test",
  batch: 500,
  ackWaitMillis: 30_000,
  maxAckPending: 2_000,
  handler,
  ...more,
})

/** Consumes into a queue, acknowledging each message. */
const intoQueue = Effect.gen(function* () {
  const bus = yield* Bus
  const texts = yield* Queue.unbounded<string>()
  yield* bus.consume(events((messages) =>
    Effect.sync(() => {
      for (const message of messages) {
        message.ack()
        Queue.offerUnsafe(texts, message.text)
      }
    })
  ))
  return texts
})

/** Publishes until the broker acknowledges, as the relay does. */
const say = (text: string) =>
  Effect.gen(function* () {
    const bus = yield* Bus
    return yield* Effect.eventually(bus.publish(subject, text))
  })

const takeUntil = (texts: Queue.Dequeue<string>, wanted: string) =>
  Effect.repeat(Queue.take(texts), { until: (text) => text === wanted })

const onOwn = <A, E>(use: Effect.Effect<A, E, Bus | Scope.Scope>) =>
  Effect.provide(Effect.scoped(use), Layer.unwrap(Effect.map(TestBus.make, ({ url }) => Bus.layer({ url }))))

describe("Bus", () => {
  it.live("publishes with an ack, reports a duplicate, and delivers it to the consumer once", () =>
    onOwn(Effect.gen(function* () {
      const bus = yield* Bus
      const got = yield* Deferred.make<BusMessage>()
      yield* bus.consume(events(([message]) => {
        message!.ack()
        return Effect.asVoid(Deferred.succeed(got, message!))
      }))
      const first = yield* bus.publish(subject, "one", { msgId: "m1", headers: { "Bailiwick-Seq": "7" } })
      const second = yield* bus.publish(subject, "one", { msgId: "m1" })
      assert.deepStrictEqual([first, second], [{ seq: 1, duplicate: false }, { seq: 1, duplicate: true }])
      const message = yield* Deferred.await(got)
      assert.deepStrictEqual(
        [message.text, message.subject, message.seq, message.deliveries, message.header("bailiwick-seq")],
        ["one", subject, 1, 1, "7"],
      )
      assert.isBelow(Math.abs(Date.now() - message.storedAtMillis), 60_000)
      assert.strictEqual(yield* bus.status, "ok")
    })))

  it.live("says why it has no streams where the broker has fewer servers than replicas are wanted", () =>
    Effect.gen(function* () {
      const { url } = yield* TestBus.make
      yield* Effect.gen(function* () {
        const bus = yield* Bus
        assert.match((yield* Effect.flip(bus.heal)).detail, /replicas > 1 not supported in non-clustered mode/)
        assert.strictEqual(yield* bus.status, "fail")
      }).pipe(Effect.provide(Bus.layer({ url, replicas: 3 })))
    }))

  it.live("refuses a message that would close the shared connection, which lives on", () =>
    onOwn(Effect.gen(function* () {
      const bus = yield* Bus
      const big = new Uint8Array(1 << 20)
      const outcomes = yield* bus.publishAll([
        { subject: "", data: "x" },
        { subject: "intake.v1.mail-events.a b", data: "x" },
        { subject: `intake.v1.mail-events.${"x".repeat(5_000)}`, data: "x" },
        { subject: "intake.v1.mail-events.*", data: "x" },
        { subject, data: big },
        { subject, data: "x", headers: { "a\r\nb": "c" } },
        { subject, data: "x", headers: { a: "b\r\nc" } },
        { subject: "nowhere.at.all", data: "x" },
        { subject, data: "good" },
      ])
      assert.deepStrictEqual(
        outcomes.map((o) => Result.isSuccess(o) ? o.success.seq : o.failure.reason),
        ["subject", "subject", "subject", "subject", "size", "headers", "headers", "no-stream", 1],
      )
      yield* bus.publishCore(subject, "x".repeat(1 << 21))
      assert.strictEqual(yield* bus.status, "ok")
    })))

  it.live("fetches what is there, without lingering, up to the batch", () =>
    onOwn(Effect.gen(function* () {
      const bus = yield* Bus
      const gate = yield* Latch.make(false)
      const sizes = yield* Queue.unbounded<number>()
      yield* bus.consume(events((messages) =>
        Effect.gen(function* () {
          yield* Queue.offer(sizes, messages.length)
          yield* gate.await
          for (const message of messages) message.ack()
        }), { batch: 40 }))
      yield* bus.publish(subject, "alone")
      assert.strictEqual(yield* Queue.take(sizes), 1)
      const outcomes = yield* bus.publishAll(Array.from({ length: 100 }, (_, i) => ({ subject, data: String(i) })))
      assert.isTrue(outcomes.every(Result.isSuccess))
      yield* gate.open
      let seen = 1
      while (seen < 101) {
        const size = yield* Queue.take(sizes)
        assert.isAtMost(size, 40)
        seen += size
      }
      assert.strictEqual(seen, 101)
    })))

  it.live("redelivers exactly the messages that were refused or failed", () =>
    onOwn(Effect.gen(function* () {
      const bus = yield* Bus
      const seen = yield* Queue.unbounded<string>()
      yield* bus.consume(events((messages) =>
        Effect.gen(function* () {
          for (const message of messages) {
            yield* Queue.offer(seen, `${message.text}${message.deliveries}`)
            if (message.deliveries > 1 || message.text === "good") message.ack()
            else if (message.text === "later") message.nak(10)
            else if (message.text === "never") message.term()
            else return yield* Effect.die("a defect")
          }
        }), { batch: 1 }))
      for (const text of ["good", "later", "never", "defect"]) yield* bus.publish(subject, text)
      const order = yield* Queue.takeN(seen, 6)
      assert.deepStrictEqual(order.toSorted(), ["defect1", "defect2", "good1", "later1", "later2", "never1"])
    })))

  it.live("starts without a broker, and works once there is one", () =>
    Effect.gen(function* () {
      const broker = yield* ownBroker
      yield* Effect.gen(function* () {
        const bus = yield* Bus
        const texts = yield* intoQueue
        assert.strictEqual(yield* bus.status, "fail")
        yield* bus.publishCore("bell.v1.x", "")
        yield* broker.start
        yield* say("first")
        assert.strictEqual(yield* Queue.take(texts), "first")
      }).pipe(Effect.provide(Bus.layer({ url: broker.url })))
    }).pipe(Effect.scoped))

  it.live("works again after SIGKILL of the broker, with its files and without", () =>
    Effect.gen(function* () {
      const broker = yield* ownBroker
      yield* broker.start
      yield* Effect.gen(function* () {
        const bus = yield* Bus
        const texts = yield* intoQueue
        yield* say("before")
        assert.strictEqual(yield* Queue.take(texts), "before")
        for (const text of ["with files", "without files"]) {
          const epoch = yield* bus.epoch
          yield* broker.kill
          yield* Effect.repeat(bus.status, { until: (status) => status === "fail" })
          if (text === "without files") yield* broker.wipe
          yield* broker.start
          yield* say(text)
          yield* takeUntil(texts, text)
          // A message meant for the old connection is not sent over the new one.
          const [late] = yield* bus.publishAll([{ subject, data: "late" }], epoch)
          assert.isTrue(Result.isFailure(late!))
          const [now] = yield* bus.publishAll([{ subject, data: "now" }], yield* bus.epoch)
          assert.isTrue(Result.isSuccess(now!))
        }
        assert.strictEqual(yield* bus.status, "ok")
      }).pipe(Effect.provide(Bus.layer({ url: broker.url })))
    }).pipe(Effect.scoped))

  it.live("makes a deleted stream and a deleted consumer again", () =>
    Effect.gen(function* () {
      const { url } = yield* TestBus.make
      yield* Effect.gen(function* () {
        const texts = yield* intoQueue
        yield* say("before")
        yield* takeUntil(texts, "before")
        const jsm = yield* manager(url)
        yield* Effect.promise(() => jsm.streams.delete("EVENTS"))
        assert.strictEqual((yield* say("stream deleted")).seq, 1)
        yield* takeUntil(texts, "stream deleted")
        yield* Effect.promise(() => jsm.consumers.delete("EVENTS", "test"))
        yield* say("consumer deleted")
        yield* takeUntil(texts, "consumer deleted")
      }).pipe(Effect.provide(Bus.layer({ url })))
    }).pipe(Effect.scoped))

  it.live("makes every stream, widens a narrow one and never narrows a wide one", () =>
    Effect.gen(function* () {
      const { url } = yield* TestBus.make
      const jsm = yield* manager(url)
      const common = { retention: RetentionPolicy.Limits, storage: StorageType.File, discard: DiscardPolicy.New }
      const year = nanos(365 * 86_400_000)
      yield* Effect.promise(async () => {
        await jsm.streams.add({ ...common, name: "EVENTS", subjects: ["more.of.it"], max_age: nanos(1_000_000) })
        await jsm.streams.add({ ...common, name: "TRANSFERS", subjects: ["transfers.v1.*.*"], max_age: year })
      })
      yield* Effect.gen(function* () {
        const bus = yield* Bus
        yield* bus.heal
        for (const name of streamNames) assert.strictEqual((yield* bus.mark(name)).lastSeq, 0)
      }).pipe(Effect.provide(Bus.layer({ url })))
      const events = yield* Effect.promise(() => jsm.streams.info("EVENTS"))
      assert.sameMembers(events.config.subjects, ["more.of.it", "intake.v1.mail-events.*", "intake.v1.notifications"])
      assert.strictEqual(events.config.max_age, nanos(7 * 86_400_000))
      const transfers = yield* Effect.promise(() => jsm.streams.info("TRANSFERS"))
      assert.strictEqual(transfers.config.max_age, year)
      assert.strictEqual(transfers.config.duplicate_window, nanos(120_000))
    }).pipe(Effect.scoped))
})
