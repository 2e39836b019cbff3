/** `/health` and `/ready` while the schema, the database and the broker go away and come back. */
import { PgClient } from "@effect/sql-pg"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Reactivity } from "effect/reactivity"
import { ownBroker } from "../services/platform/messaging/OwnBroker.ts"
import { ownPostgres } from "../support/OwnPostgres.ts"
import { mailEvent } from "./support/EventFeed.ts"
import { receiver } from "./support/Receiver.ts"
import { until } from "./support/Until.ts"
import { hook, totals } from "./support/ProgramWebhooks.ts"
import { fixture } from "./support/ProgramFixture.ts"

const ok = { database: "ok", schema: "ok", event_bus: "ok" }

describe("readiness", () => {
  it.live(
    "follows the schema, the database and the broker down, and up again by itself",
    () =>
      Effect.gen(function* () {
        const broker = yield* ownBroker
        const postgres = yield* ownPostgres
        yield* broker.start
        const { account, api, feed, tls } = yield* fixture({}, { database: postgres, natsUrl: broker.url })
        const readiness = (status: string, code: number) =>
          Effect.map(
            until(status, api.get("/ready"), ({ json }) => json.status === status),
            (reply) => {
              assert.strictEqual(reply.status, code)
              return reply.json.checks
            },
          )
        const live = Effect.map(api.get("/health"), ({ json, status }) => {
          assert.deepInclude(json, { status: "live", version: "0.2.0" })
          assert.strictEqual(status, 200)
        })
        assert.deepStrictEqual(yield* readiness("ready", 200), ok)
        yield* live

        const owner = Effect.suspend(() => PgClient.make({ url: postgres.ownerUrl, maxConnections: 1 })).pipe(
          Effect.provide(Reactivity.layer),
        )
        const asOwner = (statement: string) =>
          Effect.scoped(Effect.flatMap(owner, (sql) => sql.unsafe(statement))).pipe(Effect.orDie)
        yield* asOwner("alter table delivery_queue rename to delivery_queue_away")
        assert.deepStrictEqual(yield* readiness("not_ready", 503), { ...ok, schema: "fail" })
        yield* asOwner("alter table delivery_queue_away rename to delivery_queue")
        assert.deepStrictEqual(yield* readiness("ready", 200), ok)

        const somebody = yield* account()
        const target = yield* receiver(tls)
        const { id: hookId } = yield* hook(somebody.api, target, "/health", ["email.sent"])

        yield* postgres.kill
        assert.deepInclude(yield* readiness("not_ready", 503), { database: "fail", event_bus: "ok" })
        yield* live
        const refused = yield* somebody.api.get("/v1/webhooks/")
        assert.deepInclude(refused.json, { status: 503, code: "dependency_unavailable" })
        yield* feed.events([mailEvent(somebody.id, "1", "email.sent")])
        yield* postgres.start
        assert.deepStrictEqual(yield* readiness("ready", 200), ok)
        yield* until("what waited", totals(somebody.api, hookId), ({ delivered }) => delivered === 1)

        // Without the broker commands succeed, and the deliveries that they cause are sent.
        yield* broker.kill
        assert.deepStrictEqual(yield* readiness("degraded", 200), { ...ok, event_bus: "fail" })
        assert.deepInclude((yield* somebody.api.post(`/v1/webhooks/${hookId}/test`)).json, { queued: true })
        yield* until("the sample", totals(somebody.api, hookId), ({ delivered }) => delivered === 2)
        yield* broker.start
        assert.deepStrictEqual(yield* readiness("ready", 200), ok)
        yield* until(
          "an event",
          feed.events([mailEvent(somebody.id, "2", "email.sent")], 2_000),
          (acked) => acked.length === 1,
        )
        yield* until("its delivery", totals(somebody.api, hookId), ({ delivered }) => delivered === 3)
        assert.deepStrictEqual(target.arrivals.flatMap(({ fault }) => fault ?? []), [])
      }).pipe(Effect.scoped),
    240_000,
  )
})
