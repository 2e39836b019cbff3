/** A settlement that dies loses only its own batch, whose deliveries are sent again when their claims expire. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Database } from "../../../../services/platform/database/Database.ts"
import { Failpoints, type FaultPoint } from "../../../../services/platform/Failpoints.ts"
import { Deliveries } from "../../../../services/webhooks/Deliveries.ts"
import { Sender } from "../../../../services/webhooks/Sender.ts"
import { Settlement } from "../../../../services/webhooks/Settlement.ts"
import { serve } from "../../platform/Outbound/LoopbackServers.ts"
import { noon } from "../../../support/Fixtures.ts"
import { comes, count, event, fixture, lease, miscounted, on, stranded, webhook } from "../WebhookFixture.ts"

/** The fault point at which the next settlement dies of a defect, not of a failing database. */
let deadly: FaultPoint | undefined
const hit = (point: FaultPoint) => {
  if (point !== deadly) return
  deadly = undefined
  throw new Error(`a bug at ${point}`)
}

const working = Layer.effectDiscard(
  Effect.gen(function* () {
    yield* Effect.forkScoped(Effect.provideService((yield* Settlement).settling, Failpoints, { hit }))
    yield* Effect.forkScoped((yield* Deliveries).claiming(Effect.succeed(true)))
  }),
)

const dead = comes(Effect.sync(() => deadly === undefined))
const delivered = count("deliveries", "status = 'delivered'")
const answered = Effect.map(
  Effect.all([count("attempts", "error is null"), count("deliveries", "first_started_at is not null")]),
  ([rows, first]) => rows + first,
)

layer(Layer.fresh(Layer.provideMerge(working, fixture())))("A settlement that dies", (it) => {
  it.effect("before it writes: later ones settle, and its deliveries are sent once more", () =>
    Effect.gen(function* () {
      const receiver = yield* serve((_, response) => response.writeHead(204).end())
      const { accountId } = yield* webhook({ url: `http://127.0.0.1:${receiver.port}/` })
      const deliveries = yield* Deliveries
      deadly = "settle.before"
      yield* deliveries.accept([event(accountId)])
      yield* dead
      yield* deliveries.accept([event(accountId), event(accountId)])
      yield* comes(Effect.map(delivered, (n) => n === 2))
      assert.strictEqual(yield* count("delivery_queue", "claim is not null"), 1)
      assert.deepStrictEqual((yield* Sender).slots.load, { claimed: 0, active: 0 })

      const later = on(noon + 10 * lease)
      assert.strictEqual(yield* later((yield* Settlement).free), 1)
      yield* later(Effect.flatMap(deliveries.scan, deliveries.dispatch))
      yield* comes(Effect.map(delivered, (n) => n === 3))
      const ids = receiver.requests.map(({ headers }) => headers["webhook-id"])
      assert.deepStrictEqual([ids.length, new Set(ids).size], [4, 3])
      assert.strictEqual(ids[3], ids[0])
      assert.strictEqual(yield* answered, 3)
      assert.strictEqual(yield* count("delivery_queue"), 0)
      assert.deepStrictEqual(yield* miscounted, [])
      assert.deepStrictEqual(yield* stranded, [])
    }))

  it.effect("after its commit: nothing is settled or sent twice", () =>
    Effect.gen(function* () {
      const receiver = yield* serve((_, response) => response.writeHead(204).end())
      const { accountId } = yield* webhook({ url: `http://127.0.0.1:${receiver.port}/` })
      const deliveries = yield* Deliveries
      const before = yield* delivered
      deadly = "settle.committed"
      yield* deliveries.accept([event(accountId)])
      yield* dead
      yield* deliveries.accept([event(accountId)])
      yield* comes(Effect.map(delivered, (n) => n === before + 2))
      assert.strictEqual(yield* on(noon + 10 * lease)((yield* Settlement).free), 0)
      assert.lengthOf(receiver.requests, 2)
      assert.strictEqual(yield* answered, before + 2)
      assert.deepStrictEqual(yield* miscounted, [])
    }))

  it.effect("of a refused statement is repeated before claims are freed, so that none is interrupted", () =>
    Effect.gen(function* () {
      const { owner } = yield* Database
      const receiver = yield* serve((_, response) => response.writeHead(500).end())
      const { accountId } = yield* webhook({ url: `http://127.0.0.1:${receiver.port}/` })
      const deliveries = yield* Deliveries
      yield* owner`alter table attempts rename column duration_ms to elsewhere`
      yield* deliveries.accept([event(accountId)])
      const { slots } = yield* Sender
      yield* comes(Effect.sync(() => slots.load.claimed === 0))
      // Soon the settlement has failed, and waits for its next try.
      const later = on(noon + 10 * lease)
      yield* comes(Effect.map(Effect.exit(later((yield* Settlement).free)), ({ _tag }) => _tag === "Success"))
      yield* owner`alter table attempts rename column elsewhere to duration_ms`
      assert.strictEqual(yield* later((yield* Settlement).free), 0)
      yield* comes(Effect.map(count("deliveries", "status = 'retrying'"), (n) => n === 1))
      assert.strictEqual(
        yield* count("attempts", "error = 'interrupted' and delivery_id in (select delivery_id from delivery_queue)"),
        0,
      )
      assert.strictEqual(yield* later((yield* Settlement).free), 0)
      assert.lengthOf(receiver.requests, 1)
      assert.deepStrictEqual(yield* miscounted, [])
      assert.deepStrictEqual(yield* stranded, [])
    }))
})
