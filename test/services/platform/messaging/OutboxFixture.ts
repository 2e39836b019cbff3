/** Fixture of tests of the outbox and its relay: a database, a broker, messages of both kinds, and a follower. */
import { Effect, Layer, Queue, Redacted, Schedule, Scope } from "effect"
import { WakeUps } from "../../../../services/platform/messaging/WakeUps.ts"
import type { BusMessage } from "../../../../services/platform/messaging/Bus.ts"
import { Bus } from "../../../../services/platform/messaging/Bus.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import type { OutboxMessage } from "../../../../services/platform/messaging/Outbox.ts"
import { Outbox } from "../../../../services/platform/messaging/Outbox.ts"
import { TestBus } from "../../../support/TestBus.ts"
import { TestDatabase } from "../../../support/TestDatabase.ts"

export const platform = (url: Redacted.Redacted) =>
  Outbox.layer.pipe(Layer.provideMerge(WakeUps.layer), Layer.provideMerge(Bus.layer({ url })))

export const withBroker =
  (url: Effect.Effect<Redacted.Redacted, never, Scope.Scope>) =>
  <A, E>(use: (url: Redacted.Redacted) => Effect.Effect<A, E, Outbox | WakeUps | Bus | Database | Scope.Scope>) =>
    Effect.gen(function* () {
      const at = yield* url
      return yield* Effect.provide(Effect.scoped(use(at)), platform(at))
    }).pipe(Effect.provide(TestDatabase.layer), Effect.scoped)

export const withShared = withBroker(Effect.map(TestBus.make, ({ url }) => url))

export const mail = (n: number): OutboxMessage => ({
  stream: "MAIL_OUT",
  subject: "mailer.v1.send",
  payload: String(n),
})

export const transfer = (aggregateId: string, seq: number): OutboxMessage => ({
  stream: "TRANSFERS",
  subject: `transfers.v1.${aggregateId}.pending`,
  payload: `${aggregateId} ${seq}`,
  order: { aggregateId, seq },
})

/** The messages of a stream, in order. */
export const follow = (stream: "MAIL_OUT" | "TRANSFERS") =>
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

export const takeN = (messages: Queue.Dequeue<BusMessage>, n: number) =>
  Effect.forEach(Array.from({ length: n }), () => Effect.map(Queue.take(messages), (message) => message.text))

/** Queries until it holds: a table has no other way to be watched. */
export const until = <E, R>(holds: Effect.Effect<boolean, E, R>) =>
  Effect.repeat(holds, { until: (held) => held, schedule: Schedule.spaced("20 millis") })

/** The epoch of the connection, once its streams exist. */
export const ready = Effect.gen(function* () {
  const bus = yield* Bus
  yield* Effect.eventually(bus.heal)
  return yield* bus.epoch
})

export const unpublished = Effect.gen(function* () {
  const { sql } = yield* Database
  const rows = yield* sql<{ n: number }>`select count(*)::int n from outbox where published_at is null`
  return rows[0]!.n
})

export const allPublished = until(Effect.map(unpublished, (n) => n === 0))
