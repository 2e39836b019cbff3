/** DOMAIN_TRANSFERS_ENABLED over time: while off, nothing completes; when on again, stops are possible for an hour. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Cookies } from "../../../services/authentication/Cookies.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { Transfers } from "../../../services/transfers/Transfers.ts"
import { day, hour } from "../../support/Fixtures.ts"
import {
  accept,
  codeOf,
  command,
  config,
  domain,
  domainRow,
  footing,
  now,
  offer,
  person,
  timed,
} from "./TransferFixture.ts"

/** Starts the service over the same database with this setting. */
const started = (enabled: boolean) => Effect.provide(Transfers, Layer.fresh(Transfers.layer({ ...config, enabled })))

const cooloffOf = Effect.fnUntraced(function* (id: string) {
  const { sql } = yield* Database
  const [row] = yield* sql<{ until: Date; status: string }>`
    select cooloff_until as until, status from transfers where id = ${id}::uuid`
  return row!.until.getTime()
})

layer(Layer.provide(footing, Cookies.layer([])), { excludeTestServices: true, timeout: "2 minutes" })(
  "DOMAIN_TRANSFERS_ENABLED",
  (it) => {
    it.effect("off at the end of a window: nothing completes; on again: stoppable for another hour, once", () =>
      Effect.gen(function* () {
        const { sql } = yield* Database
        const on = yield* started(true)
        const [alice, bob] = [yield* person({ plan: "pro" }), yield* person({ plan: "pro" })]
        const accepted = Effect.fnUntraced(function* () {
          const domainId = yield* domain(alice)
          const { id } = yield* offer(alice.id, domainId, bob.email)
          yield* accept(bob.id, id)
          return { id, domainId }
        }, Effect.provideService(Transfers, on))
        const short = yield* accepted()
        yield* TestClock.adjust(20 * hour)
        const long = yield* accepted()
        const longUntil = yield* cooloffOf(long.id)

        const off = yield* started(false)
        yield* TestClock.adjust(4 * hour)
        // Neither the process with the new setting nor the one with the old setting completes it.
        for (const service of [off, on]) {
          assert.isFalse(yield* service.settle(short.id))
          assert.strictEqual(yield* codeOf(service.stop({ ...command(), transferId: short.id })), "not_stoppable")
        }
        assert.strictEqual((yield* domainRow(short.domainId)).account_id, alice.id)

        const again = yield* started(true)
        const until = (yield* now) + hour
        assert.strictEqual(yield* cooloffOf(short.id), until)
        assert.strictEqual(yield* cooloffOf(long.id), longUntil)
        const [timer] = yield* sql<{ due_at: Date }>`select due_at from timers where aggregate_id = ${short.id}`
        assert.strictEqual(timer!.due_at.getTime(), until)
        const mails = yield* sql`
          select recipient from mails where kind = 'transfer.stop' and args->>'event' = 'extended'`
        assert.deepStrictEqual(mails.map(({ recipient }) => recipient), [alice.email])
        yield* TestClock.adjust(hour - 1)
        assert.isFalse(yield* again.settle(short.id))
        // Another start with the same setting changes nothing.
        yield* started(true)
        assert.strictEqual(yield* cooloffOf(short.id), until)
        yield* TestClock.adjust(1)
        assert.isTrue(yield* again.settle(short.id))
        assert.strictEqual((yield* domainRow(short.domainId)).account_id, bob.id)
        yield* TestClock.adjust(day)
      }).pipe(timed))

    it.effect("on again in a process that ends halfway: a much later start grants a full hour", () =>
      Effect.gen(function* () {
        const { sql } = yield* Database
        const on = yield* started(true)
        const [alice, bob] = [yield* person({ plan: "pro" }), yield* person({ plan: "pro" })]
        const { id } = yield* Effect.provideService(
          Effect.flatMap(domain(alice), (domainId) => offer(alice.id, domainId, bob.email)),
          Transfers,
          on,
        )
        yield* Effect.provideService(accept(bob.id, id), Transfers, on)
        yield* started(false)
        yield* TestClock.adjust(2 * day)
        // The ended process had extended other transfers, but not this one.
        yield* sql`update transfer_feature set resuming_until = ${new Date((yield* now) + hour)}`
        yield* TestClock.adjust(2 * hour)
        const again = yield* started(true)
        assert.strictEqual(yield* cooloffOf(id), (yield* now) + hour)
        assert.isFalse(yield* again.settle(id))
      }).pipe(timed))
  },
)
