/**
 * Failures of the broker: it forgets everything, loses a stream, runs out of room. Events that PostgreSQL accepted
 * arrive all the same; events that only the broker had are outside the promise (accepted means committed in
 * PostgreSQL).
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import process from "node:process"
import { Database } from "../../services/platform/database/Database.ts"
import { until } from "../e2e/support/Until.ts"
import { fixture } from "../e2e/support/ProgramFixture.ts"
import { ownBroker } from "../services/platform/messaging/OwnBroker.ts"
import { manage } from "../support/Broker.ts"
import { freeze } from "../support/Frozen.ts"
import { brisk } from "./support/Second.ts"
import { tinyBroker } from "./support/TinyBroker.ts"
import { close, databaseOf, ended, type Traffic, traffic } from "./support/Traffic.ts"

/** The ids of the publisher's events that PostgreSQL has. */
const accepted = Effect.gen(function* () {
  const { sql } = yield* Database
  const rows = yield* sql<{ id: string }>`select source_id as id from events`
  return new Set(rows.map((row) => row.id))
}).pipe(Effect.orDie)

/** The same traffic, which owes accepted events only. */
const owing = (flow: Traffic, ids: ReadonlySet<string>): Traffic => ({
  ...flow,
  acknowledged: flow.acknowledged.filter((event) => ids.has(event.id)),
})

/** Messages of a stream; 0 until the program has made it again. */
const streamSize = (url: Redacted.Redacted, stream: string) =>
  manage(url, (manager) =>
    manager.streams.info(stream).then(({ state }) => state.messages, (error: Error) => {
      if (error.name !== "StreamNotFoundError") throw error
      return 0
    }))

describe.concurrent("a broker", () => {
  it.live("killed without its files under load loses only events that were never accepted", () =>
    Effect.gen(function* () {
      const broker = yield* ownBroker
      yield* broker.start
      const around = yield* fixture(brisk, { natsUrl: broker.url })
      const flow = yield* traffic(around)
      yield* Effect.gen(function* () {
        const { sql } = yield* Database
        const before = yield* flow.publish(200)
        yield* until("the first accepted", accepted, (ids) => ids.size === before.length)
        // The program is stopped, so events published now are only in the broker, except those already requested.
        yield* freeze(around.instance.pid())
        const between = yield* flow.publish(1_500)
        yield* broker.kill
        process.kill(around.instance.pid(), "SIGCONT")
        yield* broker.wipe
        yield* broker.start
        assert.strictEqual(between.length, 1_500)
        yield* until("the streams again", flow.publish(10), (taken) => taken.length === 10)
        const after = yield* flow.publish(100)
        yield* until("the last accepted", accepted, (ids) => after.every((event) => ids.has(event.id)))

        const ids = yield* accepted
        for (const { id } of [...before, ...after]) assert.isTrue(ids.has(id), `event ${id}`)
        const lost = between.filter((event) => !ids.has(event.id))
        assert.isAbove(lost.length, 0, "the broker had nothing of its own: this tried nothing")
        yield* ended(owing(flow, ids))
        yield* close(owing(flow, ids))

        // A publisher that repeats unacknowledged events loses nothing, and causes no repeat.
        yield* around.feed.events(between)
        yield* until("the rest", accepted, (ids) => between.every((event) => ids.has(event.id)))
        yield* ended(flow)
        yield* close(flow)

        // Messages published before are published again to the broker that forgot them.
        const [dead] = yield* sql<{ n: number }>`select count(*)::int as n from dead_letters`
        yield* until("dead letters told", streamSize(broker.url, "DEAD_LETTERS"), (n) => n >= dead!.n)
      }).pipe(Effect.provide(databaseOf(around)))
    }).pipe(Effect.scoped))

  it.live("whose streams are deleted under load gets them back, and no accepted event is lost", () =>
    Effect.gen(function* () {
      const around = yield* fixture(brisk)
      const url = Redacted.make(around.env["NATS_URL"]!)
      const flow = yield* traffic(around)
      yield* Effect.gen(function* () {
        yield* flow.publish(300)
        yield* until("some arrivals", Effect.sync(() => flow.target.hits.length), (n) => n > 30)
        yield* manage(url, async (manager) => {
          for (const stream of ["EVENTS", "DELIVERIES", "DEAD_LETTERS"]) await manager.streams.delete(stream)
        })
        yield* until("the stream again", flow.publish(10), (taken) => taken.length === 10)
        const after = yield* flow.publish(100)
        yield* until("the last accepted", accepted, (ids) => after.every((event) => ids.has(event.id)))
        const rest = owing(flow, yield* accepted)
        yield* ended(rest)
        yield* close(rest)
        const { sql } = yield* Database
        const [dead] = yield* sql<{ n: number }>`select count(*)::int as n from dead_letters`
        yield* until("dead letters told", streamSize(url, "DEAD_LETTERS"), (n) => n >= dead!.n)
      }).pipe(Effect.provide(databaseOf(around)))
    }).pipe(Effect.scoped))

  it.live("whose disk is full delays no command and no retry, and gets everything once it has room", () =>
    Effect.gen(function* () {
      const url = yield* tinyBroker(8_000_000)
      const around = yield* fixture(brisk, { natsUrl: url })
      const flow = yield* traffic(around)
      yield* Effect.gen(function* () {
        const { sql } = yield* Database
        yield* flow.publish(100)
        yield* until("the first", accepted, (ids) => ids.size === 100)
        const fill = around.feed.publish("intake.v1.notifications", "x".repeat(500_000)).pipe(
          Effect.forever,
          Effect.sandbox,
          Effect.flip,
        )
        yield* fill
        yield* fill
        assert.deepStrictEqual(yield* around.feed.events([]), [])
        const { json, status } = yield* around.api.get("/ready")
        assert.strictEqual(status, 200, JSON.stringify(json))
        for (let n = 0; n < 5; n++) {
          assert.strictEqual((yield* flow.account.session.post("/v1/api-keys/", { name: `full ${n}` })).status, 201)
        }
        // Retries do not wait for the broker either: all end.
        yield* ended(flow)
        yield* close(flow)
        const waiting = sql<{ n: number }>`select count(*)::int as n from outbox where published_at is null`
        assert.isAbove((yield* waiting)[0]!.n, 0)

        yield* manage(url, (manager) => manager.streams.purge("EVENTS"))
        yield* until("the outbox drained", waiting, ([row]) => row!.n === 0)
        assert.strictEqual((yield* flow.publish(50)).length, 50)
        yield* ended(flow)
        yield* close(flow)
      }).pipe(Effect.provide(databaseOf(around)))
    }).pipe(Effect.scoped))
})
