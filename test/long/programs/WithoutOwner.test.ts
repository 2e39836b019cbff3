/**
 * Processes as deploy/compose.yaml starts them: one keeps the partitions and has the owner's credentials, the others
 * have none, start on a migrated database, and report when no process keeps the partitions.
 */
import { assert, describe, it } from "@effect/vitest"
import { PgClient } from "@effect/sql-pg"
import { Effect, Redacted } from "effect"
import { Reactivity } from "effect/reactivity"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { dayMillis, days, nameOf } from "../../../services/platform/database/RangePartitions.ts"
import { home as emptyHome, root, start } from "../../support/Processes.ts"
import { TestBus } from "../../support/TestBus.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { api } from "../../e2e/support/ApiClient.ts"
import { mailEvent } from "../../e2e/support/EventFeed.ts"
import { cli, instance } from "../../e2e/support/ProgramInstance.ts"
import { receiver } from "../../e2e/support/Receiver.ts"
import { until } from "../../e2e/support/Until.ts"
import { hook, totals } from "../../e2e/support/ProgramWebhooks.ts"
import { fixture } from "../../e2e/support/ProgramFixture.ts"

const compose = readFileSync(join(root, "deploy", "compose.yaml"), "utf8")
const rolesOf = (service: string) => new RegExp(`^  ${service}:\\n[^]*?ROLES: (\\S+)$`, "m").exec(compose)![1]!

const ownerOf = (url: Redacted.Redacted) =>
  PgClient.make({ url, maxConnections: 1 }).pipe(Effect.provide(Reactivity.layer))

/** An empty database, and its addresses. */
const empty = Effect.gen(function* () {
  const made = yield* TestDatabase.make
  const name = `${made.name}_empty`
  const owner = yield* ownerOf(made.ownerUrl)
  yield* Effect.acquireRelease(
    owner.unsafe(`create database ${name}`),
    () => Effect.orDie(owner.unsafe(`drop database ${name} with (force)`)),
  )
  const at = (url: Redacted.Redacted) => Redacted.value(url).replace(made.name, name)
  return { url: at(made.url), ownerUrl: at(made.ownerUrl) }
})

const slow = 240_000

describe("a process without the owner's credentials", () => {
  it.live(
    "waits for the migrations, says where to apply them, and applies none",
    () =>
      Effect.gen(function* () {
        const { ownerUrl, url } = yield* empty
        const env = {
          BAILIWICK_HOME: yield* emptyHome,
          PORT: "0",
          DEMO: "false",
          LOG_LEVEL: "warn",
          CLUSTER: "on",
          DATABASE_URL: url,
          NATS_URL: Redacted.value((yield* TestBus.make).url),
          ROLES: rolesOf("one"),
        }
        const program = yield* start({ env })
        yield* program.line(
          /migration 0 of \d+ is applied, and \w+ does not own the tables: run \\"npx -y deno@2\.9\.6 task cli migrate\\" with DATABASE_OWNER_URL/,
        )
        const refused = yield* cli(env, "migrate")
        assert.strictEqual(refused.code, 1)
        assert.match(refused.output, /does not own the tables: set DATABASE_OWNER_URL to the role that does\n$/)
        assert.match(
          (yield* cli(env, "doctor")).output,
          /FAIL\s+schema\s+the database is too old for this program: migration 0 of .*with DATABASE_OWNER_URL/,
        )
        const migrated = yield* cli({ ...env, DATABASE_OWNER_URL: ownerUrl }, "migrate")
        assert.strictEqual(migrated.code, 0, migrated.output)
        yield* program.line(/bailiwick ready on http/)
        yield* program.kill("SIGTERM")
        assert.strictEqual(yield* program.exited, 0)
      }).pipe(Effect.scoped),
    slow,
  )

  it.live(
    "works beside the process that keeps the partitions, and reports when there is none",
    () =>
      Effect.gen(function* () {
        const database = yield* TestDatabase.make
        const weak = { DATABASE_OWNER_URL: "", CLUSTER: "on", BAILIWICK_KEYS_FILE: join(yield* emptyHome, "keys.json") }
        const one = yield* fixture({ ...weak, ROLES: rolesOf("one") }, { database })
        const doctor = Effect.map(cli(one.env, "doctor"), ({ output }) => output)
        const ready = (origin: () => string) => Effect.map(api(origin).get("/ready"), ({ json }) => json)
        const late = "the next partitions of events, deliveries, attempts, seen_ids, audit_records were not made: " +
          "keep one process running with the role timers and DATABASE_OWNER_URL"
        assert.deepInclude(yield* ready(one.instance.origin), { status: "ready", note: late })
        const first = yield* doctor
        assert.include(first, late)
        assert.match(first, /ok\s+roles\s+\w+ works; migrations are left to a process with DATABASE_OWNER_URL/)

        const keeping = Effect.fnUntraced(function* () {
          const env = { ...one.env, BAILIWICK_HOME: yield* emptyHome, ROLES: rolesOf("keeper") }
          const keeper = yield* start({ env: { ...env, DATABASE_OWNER_URL: Redacted.value(database.ownerUrl) } })
          yield* keeper.line(/bailiwick ready: timers\n/)
          return keeper
        })
        const keeper = yield* keeping()
        assert.match(yield* doctor, /ok\s+partitions\s+made ahead/)
        const two = yield* instance({ ...one.env, BAILIWICK_HOME: yield* emptyHome, ROLES: rolesOf("two") })
        yield* two.start()
        assert.deepStrictEqual((yield* ready(two.origin)).note, undefined)

        // As the owner only the keeper is connected.
        const owner = yield* ownerOf(database.ownerUrl)
        const partitioned = Effect.map(
          owner<{ name: string; n: number }>`
            select tableoid::regclass::text as name, count(*)::int as n from deliveries group by 1`,
          (rows) => rows.map(({ name, n }) => `${name} ${n}`),
        )
        const account = yield* one.account()
        const target = yield* receiver(one.tls)
        const { id } = yield* hook(account.api, target, "/kept", ["email.sent"])
        const sent = Effect.fnUntraced(function* (name: string, delivered: number) {
          yield* one.feed.events([mailEvent(account.id, name, "email.sent")])
          yield* until(name, totals(account.api, id), (n) => n.delivered === delivered)
        })
        const today = nameOf({ table: "deliveries", unit: days }, days.of(Date.now()))
        yield* sent("one", 1)
        assert.deepStrictEqual(yield* partitioned, [`${today} 1`])

        // Killed, and started again without the owner's credentials; the keeper is away by then.
        yield* keeper.kill("SIGKILL")
        yield* two.end("SIGKILL")
        yield* two.start()
        yield* sent("two", 2)
        assert.deepStrictEqual(yield* partitioned, [`${today} 2`])
        const others = yield* owner<{ user: string }>`
          select distinct usename::text as user from pg_stat_activity
          where datname = ${database.name} and application_name like 'bailiwick%'`
        assert.deepStrictEqual(others.map(({ user }) => user), [new URL(Redacted.value(database.url)).username])

        // The keeper was away for two days: the partitions of that time are missing.
        for (const table of ["events", "deliveries", "attempts"]) {
          for (const ahead of [2, 3]) {
            const name = nameOf({ table, unit: days }, days.of(Date.now() + ahead * dayMillis))
            yield* owner.unsafe(`drop table ${name}`)
          }
        }
        const lateDays = "the next partitions of events, deliveries, attempts were not made"
        assert.include(yield* doctor, lateDays)
        yield* two.end("SIGTERM")
        yield* two.start()
        assert.include((yield* ready(two.origin)).note, lateDays)
        yield* keeping()
        assert.match(yield* doctor, /ok\s+partitions\s+made ahead/)
      }).pipe(Effect.scoped),
    slow,
  )
})
