/**
 * A database that is slow, frozen or away while deliveries are sent: none is sent again. In real time, with a lease of
 * 4.5 s and a relay between the delivering processes and their database.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, Layer, Redacted, Schedule } from "effect"
import type { AccountId } from "../../../../schemas/BrandedIds.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import { Deliveries } from "../../../../services/webhooks/Deliveries.ts"
import type { Accepted } from "../../../../services/webhooks/Deliveries/CreateDeliveries.ts"
import { Endpoints } from "../../../../services/webhooks/Endpoints.ts"
import { Listeners } from "../../../../services/webhooks/Listeners.ts"
import { leaseMillis, Sender } from "../../../../services/webhooks/Sender.ts"
import { Settlement } from "../../../../services/webhooks/Settlement.ts"
import { relay, type TcpRelay } from "../../../support/TcpRelay.ts"
import { TestDatabase } from "../../../support/TestDatabase.ts"
import { serve } from "../../platform/Outbound/LoopbackServers.ts"
import { comesByItself, count, event, fixture, miscounted, stranded, webhook } from "../WebhookFixture.ts"

/** A third of a lease is longer than a second, since a process on a busy machine may stop for that long. */
const config = { timeoutMillis: 1_500, reserveMillis: 750 }
/** Short retry delays, since on a busy machine some answers are late. */
const schedule = { delays: Array<number>(8).fill(200), jitter: 0 }
const lease = leaseMillis(config)

/** A delivering process: all services of deliveries behind the relay, in loops like those of the workers. */
const deliverer = Effect.fnUntraced(function* (way: TcpRelay) {
  const { ownerUrl, url } = yield* TestDatabase
  const by = (address: Redacted.Redacted) => {
    const to = new URL(Redacted.value(address))
    to.port = String(way.port)
    return Redacted.make(to.href)
  }
  const database = Layer.fresh(Database.layer({ url: by(url), ownerUrl: by(ownerUrl), maxConnections: 8 }))
  const context = yield* Layer.build(
    Layer.fresh(Deliveries.layer(config)).pipe(
      Layer.provideMerge(Layer.fresh(Settlement.layer({ ...config, schedule }))),
      Layer.provideMerge(Layer.fresh(Sender.layer(config))),
      Layer.provide(Layer.fresh(Layer.merge(Endpoints.layer, Listeners.layer))),
      Layer.provideMerge(database),
    ),
  )
  return yield* Effect.gen(function* () {
    const deliveries = yield* Deliveries
    const again = <E>(millis: number, turn: Effect.Effect<unknown, E>) =>
      turn.pipe(Effect.ignore, Effect.andThen(Effect.sleep(millis)), Effect.forever, Effect.forkScoped)
    const settlement = yield* Settlement
    yield* Effect.forkScoped(settlement.settling)
    yield* Effect.forkScoped(deliveries.claiming(Effect.succeed(true)))
    yield* again(100, Effect.flatMap(deliveries.scan, deliveries.dispatch))
    yield* again(200, settlement.free)
    /** Accepts events as the worker does: a batch that fails is repeated. */
    const intake = (events: ReadonlyArray<Accepted>) =>
      Effect.gen(function* () {
        for (let at = 0; at < events.length; at += 500) {
          yield* deliveries.whileFull(50)
          yield* Effect.retry(deliveries.accept(events.slice(at, at + 500)), Schedule.spaced("100 millis"))
        }
      })
    return { intake, deliveries, slots: (yield* Sender).slots }
  }).pipe(Effect.provide(context))
})

/** `seen`: deliveries that arrived; `repeats`: attempts that arrived twice. */
const receivers = Effect.gen(function* () {
  const seen = new Set<string>()
  const attempts = new Set<string>()
  const repeats: Array<string> = []
  const { port } = yield* serve((request, response) => {
    request.resume()
    const id = String(request.headers["webhook-id"])
    const attempt = `${id} ${request.headers["x-webhook-attempt"]}`
    if (attempts.has(attempt)) repeats.push(attempt)
    attempts.add(attempt)
    seen.add(id)
    response.writeHead(204).end()
  })
  const accounts: Array<AccountId> = []
  for (let n = 0; n < 16; n++) accounts.push((yield* webhook({ url: `http://127.0.0.1:${port}/${n}` })).accountId)
  const some = (n: number) => Array.from({ length: n }, (_, i) => event(accounts[i % accounts.length]!))
  return { seen, repeats, events: some }
})

const delivered = (n: number) =>
  comesByItself(Effect.map(count("deliveries", "status = 'delivered'"), (is) => is === n))

const way = Effect.flatMap(TestDatabase, ({ url }) => relay(new URL(Redacted.value(url))))

const apart = () => Layer.fresh(fixture({ ...config, clock: Layer.empty }))

layer(apart(), { excludeTestServices: true, timeout: "1 minute" })("A database 50 ms away", (it) => {
  it.effect("settles more slowly than receivers answer: nothing is sent twice", () =>
    Effect.gen(function* () {
      const network = yield* way
      network.delay(50)
      const one = yield* deliverer(network)
      const { events, repeats, seen } = yield* receivers
      yield* one.intake(events(6_000))
      yield* delivered(6_000)
      assert.deepStrictEqual([seen.size, repeats], [6_000, []])
      assert.deepStrictEqual(yield* miscounted, [])
      assert.deepStrictEqual(yield* stranded, [])
    }), 120_000)
})

/**
 * Two processes accept events, their database is away for two leases, and they go on when it is back. The first one
 * reaches it half a lease later than the other, which must not free the first one's claims meanwhile.
 */
const beside = (away: (network: TcpRelay) => void, back: (network: TcpRelay) => void) =>
  Effect.gen(function* () {
    const [near, far] = [yield* way, yield* way]
    const [one, other] = [yield* deliverer(far), yield* deliverer(near)]
    const { events, repeats, seen } = yield* receivers
    const half = (process: typeof one) => process.intake(events(2_000))
    const load = yield* Effect.forkChild(Effect.all([half(one), half(other)], { concurrency: 2 }))
    yield* comesByItself(Effect.sync(() => seen.size > 500))
    away(far)
    away(near)
    // The outage under test: longer than every lease.
    yield* Effect.sleep(2 * lease)
    assert.isAbove(yield* count("delivery_queue", "claim is not null"), 0)
    back(near)
    yield* Effect.sleep(lease / 2)
    back(far)
    yield* Fiber.join(load)
    yield* Effect.all([half(one), half(other)], { concurrency: 2 })
    yield* delivered(8_000)
    assert.deepStrictEqual([seen.size, repeats], [8_000, []])
    assert.deepStrictEqual(yield* miscounted, [])
    assert.deepStrictEqual(yield* stranded, [])
  })

layer(apart(), { excludeTestServices: true, timeout: "1 minute" })("A database that freezes under load", (it) => {
  it.effect(
    "and goes on after two leases: nothing is sent twice",
    () => beside((network) => network.hold(), (network) => network.go()),
    120_000,
  )
})

layer(apart(), { excludeTestServices: true, timeout: "1 minute" })(
  "A database that refuses connections under load",
  (it) => {
    it.effect(
      "and comes back after two leases: nothing is sent twice",
      () => beside((network) => network.refuse(), (network) => network.mend()),
      120_000,
    )
  },
)
