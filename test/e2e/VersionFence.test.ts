/**
 * A program on a schema that admits newer programs only, or whose database takes no writes: it starts on none, and a
 * running one is left behind.
 */
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

const tooNew =
  `the database is too new for this program, which is version ${newest}: the schema admits versions from ` +
  `${newest + 1} on; start a newer version of the program`

const readOnly = "the database is read-only, as a standby is: DATABASE_URL and DATABASE_OWNER_URL have to name the " +
  "server that takes writes"

/** A program with a webhook, and its database's owner. */
const running = Effect.gen(function* () {
  const database = yield* TestDatabase.make
  const around = yield* fixture({}, { database })
  // A session keeps the settings that it began with.
  const owner = yield* PgClient.make({ url: database.ownerUrl, maxConnections: 1 }).pipe(
    Effect.provide(Reactivity.layer),
  )
  const somebody = yield* around.account()
  const { id } = yield* hook(somebody.api, yield* receiver(around.tls), "/fenced", ["email.sent"])
  yield* around.feed.events([mailEvent(somebody.id, "before", "email.sent")])
  yield* until("delivered", totals(somebody.api, id), ({ delivered }) => delivered === 1)
  return { ...around, database, owner, somebody, id }
})

/** The program takes no work, answers reads and says why; no other starts. An event waits meanwhile. */
const leftBehind = Effect.fnUntraced(
  function* ({ api, env, feed, id, somebody }: Effect.Success<typeof running>, refusal: string) {
    const left = yield* until("left behind", api.get("/ready"), ({ json }) => json.note === refusal)
    assert.strictEqual(left.status, 503)
    assert.deepInclude(left.json, { checks: { database: "ok", schema: "fail", event_bus: "ok" } })
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
  },
)

/** The program takes the work up by itself. */
const goesOn = Effect.fnUntraced(function* ({ api, id, somebody }: Effect.Success<typeof running>) {
  yield* until("ready", api.get("/ready"), ({ status }) => status === 200)
  yield* until("the waiting event", totals(somebody.api, id), ({ delivered }) => delivered === 2)
  assert.strictEqual((yield* somebody.api.post(`/v1/webhooks/${id}/test`)).status, 200)
})

describe("a program that its database does not admit", () => {
  it.live("takes no work while the schema admits newer programs only", () =>
    Effect.gen(function* () {
      const around = yield* running
      const admit = (program: number) => around.owner`update schema_meta set min_app = ${program}`
      yield* admit(newest + 1)
      yield* leftBehind(around, tooNew)
      yield* admit(newest)
      yield* goesOn(around)
    }).pipe(Effect.scoped), 240_000)

  it.live("takes no work while the database takes no writes, as a standby", () =>
    Effect.gen(function* () {
      const around = yield* running
      const { name } = around.database
      /** As a fail-over looks from outside: every connection is lost, and the next one meets the other server. */
      const turn = Effect.fnUntraced(function* (to: "on" | "off") {
        yield* around.owner.unsafe(`alter database ${name} set default_transaction_read_only = ${to}`)
        yield* around.owner`select pg_terminate_backend(pid) from pg_stat_activity
          where datname = ${name} and pid <> pg_backend_pid()`
      })
      yield* turn("on")
      yield* leftBehind(around, readOnly)
      yield* turn("off")
      yield* goesOn(around)
    }).pipe(Effect.scoped), 240_000)
})
