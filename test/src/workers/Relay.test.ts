import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Layer, Queue, Redacted, Ref, Scope } from "effect"
import { WakeUps } from "../../../services/platform/messaging/WakeUps.ts"
import { Bus } from "../../../services/platform/messaging/Bus.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { ClockHealth } from "../../../services/platform/database/DatabaseClock.ts"
import { Outbox } from "../../../services/platform/messaging/Outbox.ts"
import { Relay } from "../../../src/workers/Relay.ts"
import { manage } from "../../support/Broker.ts"
import { ownBroker } from "../../services/platform/messaging/OwnBroker.ts"
import {
  allPublished,
  follow,
  mail,
  platform,
  ready,
  takeN,
  transfer,
  unpublished,
  until,
  withBroker,
  withShared,
} from "../../services/platform/messaging/OutboxFixture.ts"

/** A process of its own: own connection, own owner of partitions. */
const relay = (url: Redacted.Redacted) => Layer.fresh(Relay.layer.pipe(Layer.provide(Layer.fresh(platform(url)))))

describe("Relay", () => {
  it.live("committed messages are published once, and rolled-back ones never", () =>
    withShared((url) =>
      Effect.gen(function* () {
        const { sql } = yield* Database
        const outbox = yield* Outbox
        const messages = yield* follow("MAIL_OUT")
        yield* Layer.build(relay(url))
        yield* Effect.exit(sql.withTransaction(Effect.andThen(outbox.add(mail(-1)), Effect.fail("no"))))
        for (let n = 0; n < 1_500; n += 500) {
          yield* sql.withTransaction(outbox.add(...Array.from({ length: 500 }, (_, i) => mail(n + i))))
        }
        const texts = yield* takeN(messages, 1_500)
        assert.sameMembers(texts, Array.from({ length: 1_500 }, (_, n) => String(n)))
        yield* allPublished
        const [row] = yield* sql<{ claim: unknown; attempts: number }>`select claim, attempts from outbox limit 1`
        assert.deepStrictEqual(row, { claim: null, attempts: 1 })
        assert.strictEqual(yield* Queue.size(messages), 0)
      })
    ))

  it.live("turns begin ten milliseconds apart at least, however often the signal comes", () =>
    withShared((url) =>
      Effect.gen(function* () {
        let turns = 0
        const counted = Layer.effect(
          Outbox,
          Effect.map(Outbox, (outbox) =>
            Outbox.of({
              ...outbox,
              relay: { ...outbox.relay, publishDue: () => Effect.sync(() => ++turns < 0) },
            })),
        )
        const context = yield* Layer.build(Layer.provideMerge(counted, Layer.fresh(platform(url))))
        yield* Effect.provide(Layer.build(Relay.layer), context)
        yield* until(Effect.sync(() => turns > 0))
        const before = turns
        const began = performance.now()
        const { notify } = Context.get(context, WakeUps)
        while (performance.now() - began < 300) yield* Effect.andThen(notify("outbox"), Effect.sleep(1))
        assert.isAtLeast(turns - before, 2)
        assert.isAtMost(turns - before, (performance.now() - began) / 10 + 1)
      })
    ))

  it.live("a message that can never be published waits alone, with its reason", () =>
    withShared((url) =>
      Effect.gen(function* () {
        const { sql } = yield* Database
        const outbox = yield* Outbox
        const messages = yield* follow("MAIL_OUT")
        yield* Layer.build(relay(url))
        const [bad] = yield* outbox.add({ ...mail(0), subject: "mailer.v1.a b" })
        const [badOrdered] = yield* outbox.add({ ...transfer("bad", 1), subject: "transfers.v1..x" })
        const failed = sql<{ n: number }>`select count(*)::int n from outbox where last_error like 'subject%'`
        yield* until(Effect.map(failed, ([row]) => row!.n === 2))
        const rest = Array.from({ length: 50 }, (_, n) => mail(n + 1))
        yield* outbox.add(...rest, transfer("good", 1), transfer("bad", 2))
        yield* takeN(messages, 50)
        yield* until(Effect.map(unpublished, (n) => n === 3))
        const waiting = yield* sql<{ id: string; seq: bigint | null }>`
          select id, seq from outbox where published_at is null order by seq nulls first`
        assert.deepStrictEqual(waiting.slice(0, 2).map((row) => row.id), [bad!, badOrdered!])
        // Its successor waits for it: the order of an aggregate is never broken.
        assert.strictEqual(waiting[2]?.seq, 2n)
      })
    ))

  it.live("each aggregate's order holds with two relays at once, and over a change of owner", () =>
    withShared((url) =>
      Effect.gen(function* () {
        const outbox = yield* Outbox
        const { sql } = yield* Database
        const messages = yield* follow("TRANSFERS")
        const first = yield* Scope.make()
        yield* Layer.build(relay(url)).pipe(Scope.provide(first))
        yield* until(Effect.map(sql`select from outbox_lanes where owner is null`, (rows) => rows.length === 0))
        yield* Layer.build(relay(url))
        const aggregates = Array.from({ length: 40 }, (_, i) => `aggregate-${i}`)
        const write = (from: number) =>
          Effect.forEach(
            aggregates,
            (id) => Effect.forEach([0, 1, 2, 3, 4], (i) => outbox.add(transfer(id, from + i))),
            { concurrency: 8, discard: true },
          )
        const writing = yield* Effect.forkChild(Effect.forEach([1, 6, 11, 16], write, { discard: true }))
        yield* takeN(messages, 300).pipe(Effect.flatMap((texts) =>
          Effect.gen(function* () {
            // The owner of every partition is stopped meanwhile; the other one takes over.
            yield* Scope.close(first, Exit.void)
            yield* Fiber.join(writing)
            yield* allPublished
            texts.push(...(yield* Queue.takeAll(messages)).map((message) => message.text))
            while (new Set(texts).size < 800) texts.push(...(yield* takeN(messages, 1)))
            for (const id of aggregates) {
              const seqs = texts.filter((text) => text.startsWith(`${id} `)).map((text) => Number(text.split(" ")[1]))
              // A message acknowledged but not settled is published again: a repeat is allowed, a gap is not.
              let highest = 0
              for (const seq of seqs) {
                assert.isAtMost(seq, highest + 1, `${id}: ${seqs}`)
                highest = Math.max(highest, seq)
              }
              assert.strictEqual(highest, 20)
            }
            const fences = yield* sql<{ fence: bigint }>`select distinct fence from outbox_lanes`
            assert.deepStrictEqual(fences, [{ fence: 2n }])
          })
        ))
      })
    ))

  it.live("the relay pauses while the clocks disagree", () =>
    withShared((url) =>
      Effect.gen(function* () {
        const outbox = yield* Outbox
        const health = yield* Ref.make({ offsetMillis: 31_000, healthy: false })
        const looked = yield* Queue.unbounded<void>()
        const read = Effect.andThen(Queue.offer(looked, undefined), Ref.get(health))
        const messages = yield* follow("MAIL_OUT")
        yield* outbox.add(mail(1))
        yield* Layer.build(Layer.provide(relay(url), Layer.succeed(ClockHealth, { read })))
        yield* ready
        yield* Queue.takeN(looked, 12)
        assert.strictEqual(yield* unpublished, 1)
        assert.strictEqual(yield* Queue.size(messages), 0)
        yield* Ref.set(health, { offsetMillis: 0, healthy: true })
        assert.deepStrictEqual(yield* takeN(messages, 1), ["1"])
      })
    ))

  it.live("commands succeed without a broker, and are published once there is one", () =>
    Effect.gen(function* () {
      const broker = yield* ownBroker
      yield* withBroker(Effect.succeed(broker.url))((url) =>
        Effect.gen(function* () {
          const outbox = yield* Outbox
          yield* Layer.build(relay(url))
          yield* outbox.add(mail(1), mail(2), transfer("a", 1))
          assert.strictEqual(yield* unpublished, 3)
          yield* broker.start
          const messages = yield* follow("MAIL_OUT")
          assert.sameMembers(yield* takeN(messages, 2), ["1", "2"])
          yield* allPublished
        })
      )
    }).pipe(Effect.scoped))

  it.live(
    "messages that the broker lost are published again: its files, one stream, a restart's last minutes",
    () =>
      Effect.gen(function* () {
        const broker = yield* ownBroker
        yield* broker.start
        yield* withBroker(Effect.succeed(broker.url))((url) =>
          Effect.gen(function* () {
            const { sql } = yield* Database
            const outbox = yield* Outbox
            const bus = yield* Bus
            yield* Layer.build(relay(url))
            yield* outbox.add(mail(1), transfer("a", 1), transfer("a", 2))
            yield* allPublished
            const marks = sql<{ n: number }>`
            select count(*)::int n from relay_streams
            where again_until is null and last_seq = case stream when 'TRANSFERS' then 2 when 'MAIL_OUT' then 1 else 0 end`
            yield* until(Effect.map(marks, ([row]) => row!.n === 11))
            // A row published long ago is beyond what a restart can lose, but not beyond a lost stream.
            yield* sql`update outbox set published_at = published_at - interval '1 day' where payload = 'a 1'`

            // An orderly stop loses nothing: no row is due again.
            yield* broker.stop
            yield* broker.start
            yield* Effect.eventually(bus.mark("TRANSFERS"))
            assert.isTrue(yield* Effect.repeat(outbox.relay.recall, { until: (complete) => complete }))
            assert.deepStrictEqual(yield* sql`select stream from relay_streams where again_until is not null`, [])
            assert.strictEqual((yield* bus.mark("TRANSFERS")).lastSeq, 2)

            yield* broker.kill
            yield* broker.start
            const lastSeq = (stream: "TRANSFERS" | "MAIL_OUT", n: number) =>
              until(Effect.map(Effect.eventually(bus.mark(stream)), (mark) => mark.lastSeq >= n))
            yield* lastSeq("TRANSFERS", 3)
            yield* lastSeq("MAIL_OUT", 2)
            yield* allPublished
            const copies = yield* manage(
              broker.url,
              (manager) => Promise.all([2, 3].map((seq) => manager.streams.getMessage("TRANSFERS", { seq }))),
            )
            assert.deepStrictEqual(copies.map((copy) => copy!.string()), ["a 2", "a 2"])
            const [first, again] = copies.map((copy) => copy!.header)
            assert.strictEqual(again!.get("Nats-Msg-Id"), "", "by which the broker could drop it")
            assert.strictEqual(first!.get("Bailiwick-Id"), first!.get("Nats-Msg-Id"))
            assert.strictEqual(again!.get("Bailiwick-Id"), first!.get("Bailiwick-Id"), "by which subscribers drop it")

            yield* broker.kill
            yield* broker.wipe
            yield* broker.start
            const messages = yield* follow("TRANSFERS")
            assert.deepStrictEqual(yield* takeN(messages, 2), ["a 1", "a 2"])
            yield* lastSeq("MAIL_OUT", 1)
          })
        )
      }).pipe(Effect.scoped),
    120_000,
  )
})
