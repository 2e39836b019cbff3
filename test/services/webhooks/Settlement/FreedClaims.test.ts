/** After the database was away, a process frees the claims of others only after they had time to settle. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Redacted, Schedule } from "effect"
import { Database } from "../../../../services/platform/database/Database.ts"
import { specified } from "../../../../services/webhooks/RetrySchedule.ts"
import { Sender } from "../../../../services/webhooks/Sender.ts"
import { Settlement } from "../../../../services/webhooks/Settlement.ts"
import { relay, type TcpRelay } from "../../../support/TcpRelay.ts"
import { TestDatabase } from "../../../support/TestDatabase.ts"
import { count, event, fixture, lease, now, on, take, webhook } from "../WebhookFixture.ts"

/** The settlement of a process that uses its database through the relay, without workers. */
const behind = Effect.fnUntraced(function* (network: TcpRelay) {
  const { ownerUrl, url } = yield* TestDatabase
  const through = (address: Redacted.Redacted) => {
    const to = new URL(Redacted.value(address))
    to.port = String(network.port)
    return Redacted.make(to.href)
  }
  const config = { timeoutMillis: 10_000, schedule: specified }
  const database = Layer.fresh(Database.layer({ url: through(url), ownerUrl: through(ownerUrl), maxConnections: 2 }))
  return yield* Layer.build(
    Layer.fresh(Settlement.layer(config)).pipe(
      Layer.provide(Layer.fresh(Sender.layer(config))),
      Layer.provideMerge(database),
    ),
  )
})

layer(Layer.fresh(fixture({ clock: Layer.empty })), { excludeTestServices: true })(
  "Claims of other processes",
  (it) => {
    it.effect("are freed one and a half leases after the last read that failed, not after the first", () =>
      Effect.gen(function* () {
        const { url } = yield* TestDatabase
        const network = yield* relay(new URL(Redacted.value(url)))
        const { accountId } = yield* webhook()
        yield* take([event(accountId), event(accountId)])
        const process = yield* behind(network)
        const free = Effect.provide(Effect.flatMap(Settlement, ({ free }) => free), process)
        const reads = Effect.provide(Effect.flatMap(Database, ({ sql }) => sql`select 1`), process)
        const over = (yield* now) + 1.1 * lease

        network.refuse()
        yield* Effect.flip(on(over)(free))
        yield* Effect.flip(on(over + 1.4 * lease)(free))
        network.mend()
        yield* Effect.retry(reads, Schedule.spaced("10 millis"))
        assert.strictEqual(yield* on(over + 1.6 * lease)(free), 0)
        assert.strictEqual(yield* count("delivery_queue", "claim is not null"), 2)
        assert.strictEqual(yield* on(over + 3 * lease)(free), 2)
        assert.strictEqual(yield* count("delivery_queue", "claim is null and attempts_interrupted = 1"), 2)
      }))
  },
)
