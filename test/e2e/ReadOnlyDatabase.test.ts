/** A program whose database takes no writes, as a standby does: it starts on none, and a running one takes no work. */
import { PgClient } from "@effect/sql-pg"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Reactivity } from "effect/reactivity"
import { start } from "../support/Processes.ts"
import { TestDatabase } from "../support/TestDatabase.ts"
import { mailEvent } from "./support/EventFeed.ts"
import { fixture } from "./support/ProgramFixture.ts"
import { cli } from "./support/ProgramInstance.ts"
import { hook, totals } from "./support/ProgramWebhooks.ts"
import { receiver } from "./support/Receiver.ts"
import { until } from "./support/Until.ts"

const refusal = "the database is read-only, as a standby is: DATABASE_URL and DATABASE_OWNER_URL have to name the " +
  "server that takes writes"

describe("a program whose database takes no writes", () => {
  it.live(
    "takes no work, answers reads and says why; takes the work up on a server that does, and does not start before",
    () =>
      Effect.gen(function* () {
        const database = yield* TestDatabase.make
        const { account, api, env, feed, tls } = yield* fixture({}, { database })
        // A session keeps the setting that it began with.
        const owner = yield* PgClient.make({ url: database.ownerUrl, maxConnections: 1 }).pipe(
          Effect.provide(Reactivity.layer),
        )
        /** As a fail-over looks from outside: every connection is lost, and the next one meets the other server. */
        const turn = Effect.fnUntraced(function* (readOnly: "on" | "off") {
          yield* owner.unsafe(`alter database ${database.name} set default_transaction_read_only = ${readOnly}`)
          yield* owner`select pg_terminate_backend(pid) from pg_stat_activity
            where datname = ${database.name} and pid <> pg_backend_pid()`
        })
        const somebody = yield* account()
        const target = yield* receiver(tls)
        const { id } = yield* hook(somebody.api, target, "/fenced", ["email.sent"])

        yield* turn("on")
        const left = yield* until("left behind", api.get("/ready"), ({ json }) => json.note === refusal)
        assert.strictEqual(left.status, 503)
        assert.deepInclude(left.json, { checks: { database: "ok", schema: "fail", event_bus: "ok" } })
        const command = yield* somebody.api.post(`/v1/webhooks/${id}/test`)
        assert.deepInclude(command.json, { status: 503, code: "dependency_unavailable", detail: refusal })
        assert.strictEqual((yield* somebody.api.get(`/v1/webhooks/${id}`)).status, 200)
        yield* feed.events([mailEvent(somebody.id, "meanwhile", "email.sent")])
        const doctor = yield* cli(env, "doctor")
        assert.strictEqual(doctor.code, 1)
        assert.include(doctor.output, `FAIL schema        ${refusal}\n`)
        const next = yield* start({ env: { ...env, PORT: "0", BAILIWICK_HOME: `${env["BAILIWICK_HOME"]}/next` } })
        assert.strictEqual(yield* next.exited, 1)
        assert.strictEqual(next.output(), `bailiwick: ${refusal}\n`)
        const migrated = yield* cli(env, "migrate")
        assert.deepStrictEqual([migrated.code, migrated.output.trim()], [1, refusal])
        assert.strictEqual((yield* totals(somebody.api, id)).all, 0)

        yield* turn("off")
        yield* until("ready", api.get("/ready"), ({ status }) => status === 200)
        yield* until("the waiting event", totals(somebody.api, id), ({ delivered }) => delivered === 1)
      }).pipe(Effect.scoped),
    240_000,
  )
})
