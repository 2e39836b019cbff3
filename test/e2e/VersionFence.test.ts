/** A program on a schema that admits newer programs only: it starts on none, and a running one is left behind. */
import { PgClient } from "@effect/sql-pg"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Reactivity } from "effect/reactivity"
import { newest } from "../../src/Migrations.ts"
import { start } from "../support/Processes.ts"
import { TestDatabase } from "../support/TestDatabase.ts"
import { mailEvent } from "./support/EventFeed.ts"
import { fixture } from "./support/ProgramFixture.ts"
import { cli } from "./support/ProgramInstance.ts"
import { hook, totals } from "./support/ProgramWebhooks.ts"
import { receiver } from "./support/Receiver.ts"
import { until } from "./support/Until.ts"

const refusal =
  `the database is too new for this program, which is version ${newest}: the schema admits versions from ` +
  `${newest + 1} on; start a newer version of the program`

describe("a program on a schema that admits newer programs only", () => {
  it.live(
    "takes no work, answers reads and says why; takes the work up once the schema admits it, and does not start before",
    () =>
      Effect.gen(function* () {
        const database = yield* TestDatabase.make
        const { account, api, env, feed, tls } = yield* fixture({}, { database })
        const owner = yield* PgClient.make({ url: database.ownerUrl, maxConnections: 1 }).pipe(
          Effect.provide(Reactivity.layer),
        )
        const admit = (program: number) => owner`update schema_meta set min_app = ${program}`
        const ready = (status: string) => until(status, api.get("/ready"), ({ json }) => json.status === status)
        const somebody = yield* account()
        const target = yield* receiver(tls)
        const { id } = yield* hook(somebody.api, target, "/fenced", ["email.sent"])
        yield* feed.events([mailEvent(somebody.id, "before", "email.sent")])
        yield* until("delivered", totals(somebody.api, id), ({ delivered }) => delivered === 1)

        yield* admit(newest + 1)
        const left = yield* ready("not_ready")
        assert.strictEqual(left.status, 503)
        assert.deepInclude(left.json, {
          note: refusal,
          checks: { database: "ok", schema: "fail", event_bus: "ok" },
        })
        const command = yield* somebody.api.post(`/v1/webhooks/${id}/test`)
        assert.deepInclude(command.json, { status: 503, code: "dependency_unavailable", detail: refusal })
        assert.strictEqual(command.headers.get("retry-after"), "5")
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
        // The event has waited for as long as two other programs took to start.
        assert.strictEqual((yield* totals(somebody.api, id)).all, 1)

        yield* admit(newest)
        yield* ready("ready")
        yield* until("the waiting event", totals(somebody.api, id), ({ delivered }) => delivered === 2)
        assert.strictEqual((yield* somebody.api.post(`/v1/webhooks/${id}/test`)).status, 200)
      }).pipe(Effect.scoped),
    240_000,
  )
})
