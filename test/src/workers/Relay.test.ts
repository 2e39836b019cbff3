import { assert, describe, it } from "@effect/vitest"
import { Clock, Context, Effect, Exit, Fiber, Layer, Queue, Redacted, Schedule, Scope } from "effect"
import { Bells } from "../../../services/platform/Bells.ts"
import type { BusMessage } from "../../../services/platform/Bus.ts"
import { Bus } from "../../../services/platform/Bus.ts"
import { Database } from "../../../services/platform/Database.ts"
import type { OutboxMessage } from "../../../services/platform/Outbox.ts"
import { Outbox } from "../../../services/platform/Outbox.ts"
import { Relay } from "../../../src/workers/Relay.ts"
import { ownBroker } from "../../services/platform/OwnBroker.ts"
import { TestBus } from "../../support/TestBus.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

const platform = (url: Redacted.Redacted) =>
  Outbox.layer.pipe(Layer.provideMerge(Bells.layer), Layer.provideMerge(Bus.layer({ url })))

/** A process of its own as far as anyone can tell: own connection, own lane owner. */
const relay = (url: Redacted.Redacted) => Layer.fresh(Relay.layer.pipe(Layer.provide(Layer.fresh(platform(url)))))

const withBroker =
  (url: Effect.Effect<Redacted.Redacted, never, Scope.Scope>) =>
  <A, E>(use: (url: Redacted.Redacted) => Effect.Effect<A, E, Outbox | Bells | Bus | Database | Scope.Scope>) =>
    Effect.gen(function* () {
      const at = yield* url
      return yield* Effect.provide(Effect.scoped(use(at)), platform(at))
    }).pipe(Effect.provide(TestDatabase.layer), Effect.scoped)

const withShared = withBroker(Effect.map(TestBus.make, ({ url }) => url))

const mail = (n: number): OutboxMessage => ({ stream: "MAIL_OUT", subject: "mailer.v1.send", payload: String(n) })

const transfer = (aggregateId: string, seq: number): OutboxMessage => ({
  stream: "TRANSFERS",
  subject: `transfers.v1.${aggregateId}.pending`,
  payload: `${aggregateId} ${seq}`,
  order: { aggregateId, seq },
})

/** Everything that a stream carries, in its order. */
const follow = (stream: "MAIL_OUT" | "TRANSFERS") =>
  Effect.gen(function* () {
    const messages = yield* Queue.unbounded<BusMessage>()
    yield* (yield* Bus).consume({
      stream,
      durable: "follow",
      batch: 500,
      ackWaitMillis: 30_000,
      maxAckPending: 5_000,
      handler: (batch) =>
        Effect.sync(() => {
          for (const message of batch) {
            message.ack()
            Queue.offerUnsafe(messages, message)
          }
        }),
    })
    return messages
  })

const takeN = (messages: Queue.Dequeue<BusMessage>, n: number) =>
  Effect.forEach(Array.from({ length: n }), () => Effect.map(Queue.take(messages), (message) => message.text))

/** Looks until it holds; a query is the only way to see a table change. */
const until = <E, R>(holds: Effect.Effect<boolean, E, R>) =>
  Effect.repeat(holds, { until: (held) => held, schedule: Schedule.spaced("20 millis") })

/** The epoch of a connection whose streams stand. */
const ready = Effect.gen(function* () {
  const bus = yield* Bus
  yield* Effect.eventually(bus.heal)
  return yield* bus.epoch
})

const unpublished = Effect.gen(function* () {
  const { sql } = yield* Database
  const rows = yield* sql<{ n: number }>`select count(*)::int n from outbox where published_at is null`
  return rows[0]!.n
})

const allPublished = until(Effect.map(unpublished, (n) => n === 0))

describe("Relay", () => {
  it.live("publishes what committed, once, and nothing of what did not", () =>
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
        assert.deepStrictEqual(yield* outbox.backlog, { waiting: 0, failing: 0 })
        const [row] = yield* sql<{ claim: unknown; attempts: number }>`select claim, attempts from outbox limit 1`
        assert.deepStrictEqual(row, { claim: null, attempts: 1 })
        assert.strictEqual(yield* Queue.size(messages), 0)
      })
    ))

  it.live("lets a row that can never be published wait alone, with its reason", () =>
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

  it.live("keeps the order of each aggregate with two relays at once, and over a change of owner", () =>
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
            // The owner of every lane goes in the midst of it; the other takes over.
            yield* Scope.close(first, Exit.void)
            yield* Fiber.join(writing)
            yield* allPublished
            texts.push(...(yield* Queue.takeAll(messages)).map((message) => message.text))
            while (new Set(texts).size < 800) texts.push(...(yield* takeN(messages, 1)))
            for (const id of aggregates) {
              const seqs = texts.filter((text) => text.startsWith(`${id} `)).map((text) => Number(text.split(" ")[1]))
              // What was acked and not yet settled comes once more: a repeat is allowed, a gap is not.
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

  it.live("fences an owner that was frozen past its lease", () =>
    withShared((url) =>
      Effect.gen(function* () {
        const { sql } = yield* Database
        const outbox = yield* Outbox
        const messages = yield* follow("TRANSFERS")
        const other = yield* Layer.build(Layer.fresh(platform(url)))
        const { relay: late } = outbox
        const { relay: next } = Context.get(other, Outbox)
        yield* late.holdLanes
        yield* outbox.add(transfer("a", 1), { ...transfer("a", 2), subject: "transfers.v1..x" })
        // Its lease ends while it believes that it has it, and another takes over.
        yield* sql`update outbox_lanes set lease_until = ${new Date(0)}`
        yield* next.holdLanes
        yield* late.publishOrdered(yield* ready)
        assert.strictEqual(yield* unpublished, 2)
        assert.deepStrictEqual(yield* sql`select from outbox where attempts > 0`, [])
        yield* next.publishOrdered(yield* Effect.provide(ready, other))
        assert.strictEqual(yield* unpublished, 1)
        assert.deepStrictEqual(yield* takeN(messages, 1), ["a 1"])
      })
    ))

  it.live("lets commands succeed without a broker, and publishes when there is one", () =>
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
    "publishes again what the broker forgot: its files, one stream, and after a restart the last minutes",
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
            yield* until(Effect.map(marks, ([row]) => row!.n === 10))
            // A row published long ago is beyond what a restart can lose, but not beyond a lost stream.
            yield* sql`update outbox set published_at = published_at - interval '1 day' where payload = 'a 1'`

            yield* broker.kill
            yield* broker.start
            const lastSeq = (stream: "TRANSFERS" | "MAIL_OUT", n: number) =>
              until(Effect.map(Effect.eventually(bus.mark(stream)), (mark) => mark.lastSeq === n))
            yield* lastSeq("TRANSFERS", 3)
            yield* lastSeq("MAIL_OUT", 2)
            yield* allPublished

            yield* broker.kill
            yield* broker.wipe
            yield* broker.start
            const messages = yield* follow("TRANSFERS")
            assert.deepStrictEqual(yield* takeN(messages, 2), ["a 1", "a 2"])
            yield* lastSeq("MAIL_OUT", 1)
          })
        )
      }).pipe(Effect.scoped),
    60_000,
  )

  it.live("frees what a dead relay held, purges what is old, and scans only what waits", () =>
    withShared(() =>
      Effect.gen(function* () {
        const { sql, owner } = yield* Database
        const { add, relay } = yield* Outbox
        const now = yield* Clock.currentTimeMillis
        yield* add(mail(1), mail(2), transfer("a", 1), transfer("a", 2))
        yield* sql`update outbox set claim = nextval('claims'), lease_until = ${new Date(now - 1)} where payload = '1'`
        yield* relay.free
        assert.strictEqual((yield* sql`select from outbox where claim is null`).length, 4)
        const epoch = yield* ready
        yield* relay.publishDue(epoch)
        yield* relay.holdLanes
        yield* relay.publishOrdered(epoch)
        assert.strictEqual(yield* unpublished, 0)
        yield* sql`update outbox set published_at = ${new Date(now - 16 * 60_000)}`
        assert.strictEqual(yield* relay.purge, 2)
        yield* sql`update outbox set published_at = ${new Date(now - 91 * 86_400_000)} where seq = 1`
        assert.strictEqual(yield* relay.purge, 1)

        yield* sql`
          insert into outbox (id, stream, subject, payload, created_at, not_before, published_at)
          select gen_random_uuid(), 'MAIL_OUT', 'mailer.v1.send', '{}', ${new Date(now)}, ${new Date(now)}, ${new Date(
          now,
        )}
          from generate_series(1, 20000)`
        yield* owner`analyze outbox`
        const plans = yield* Effect.forEach([
          sql`select id from outbox t where t.claim is null and t.not_before <= ${new Date(now)}
            and t.published_at is null and t.aggregate_id is null order by t.not_before, t.id limit 500 for update`,
          sql`select id from outbox where claim is not null and lease_until < ${new Date(now)} limit 100`,
          sql`select id from outbox where published_at is null and aggregate_id is not null and lane = 3::smallint
            order by aggregate_id, seq, id limit 1`,
          sql`select id from outbox where stream = 'MAIL_OUT' and published_at < ${new Date(now)}
            order by published_at limit 500`,
        ], (query) => sql<{ "QUERY PLAN": string }>`explain ${query}`)
        const indexes = plans.map((plan) => /outbox_\w+/.exec(plan.map((row) => row["QUERY PLAN"]).join())?.[0])
        assert.deepStrictEqual(indexes, ["outbox_due", "outbox_leases", "outbox_lane", "outbox_published"])
      })
    ))
})
