/** A real PgBouncer before PostgreSQL: the program says why it does not work behind one, and does nothing. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { chmodSync, existsSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import process from "node:process"
import { freePort } from "../../src/embedded/FreePorts.ts"
import { home as emptyHome, start } from "../support/Processes.ts"
import { TestBus } from "../support/TestBus.ts"
import { TestDatabase } from "../support/TestDatabase.ts"
import { cli } from "./support/ProgramInstance.ts"

/** Debian's package. It does not run as root. */
const pooler = "/usr/sbin/pgbouncer"
const user = process.getuid?.() === 0 ? ["-u", "nobody"] : []

/** A pooler in front of a database of its own; gives the addresses of both of the program's roles through it. */
const pooled = Effect.fnUntraced(function* (settings: ReadonlyArray<string>) {
  const home = yield* emptyHome
  const database = yield* TestDatabase.make
  const [app, owner] = [database.url, database.ownerUrl].map((url) => new URL(Redacted.value(url)))
  const port = yield* freePort()
  const users = join(home, "users.txt")
  writeFileSync(
    users,
    [app!, owner!].map(({ password, username }) => `"${username}" "${decodeURIComponent(password)}"\n`).join(""),
  )
  const file = join(home, "pgbouncer.ini")
  writeFileSync(
    file,
    [
      "[databases]",
      `* = host=${app!.hostname} port=${app!.port}`,
      "[pgbouncer]",
      "listen_addr = 127.0.0.1",
      `listen_port = ${port}`,
      "unix_socket_dir =",
      "auth_type = scram-sha-256",
      `auth_file = ${users}`,
      ...settings,
      "",
    ].join("\n"),
  )
  chmodSync(home, 0o755)
  const program = yield* start({ command: [pooler, ...user], module: file, env: {} })
  yield* program.line(/process up/)
  const through = (url: URL) => Object.assign(new URL(url), { port: String(port) }).href
  return { place: `127.0.0.1:${port}`, app: through(app!), owner: through(owner!), direct: app!.href }
})

const cases: ReadonlyArray<readonly [string, ReadonlyArray<string>]> = [
  ["in transaction mode, told to ignore parameters", [
    "pool_mode = transaction",
    "ignore_startup_parameters = lock_timeout, statement_timeout, idle_in_transaction_session_timeout, plan_cache_mode",
  ]],
  ["in session mode, as it comes", ["pool_mode = session"]],
]

describe.skipIf(!existsSync(pooler))("behind PgBouncer", () => {
  it.live.each(cases)("%s: a start and every command end with the reason", ([, settings]) =>
    Effect.gen(function* () {
      const { app, direct, owner, place } = yield* pooled(settings)
      const env = {
        BAILIWICK_HOME: yield* emptyHome,
        PORT: "0",
        DEMO: "false",
        LOG_LEVEL: "warn",
        DATABASE_URL: app,
        DATABASE_OWNER_URL: owner,
        NATS_URL: Redacted.value((yield* TestBus.make).url),
      }
      const why = `a pooler at ${place} keeps from PostgreSQL what connections set, such as time limits: ` +
        "DATABASE_URL and DATABASE_OWNER_URL have to name the server itself"
      const program = yield* start({ env })
      assert.strictEqual(yield* program.exited, 1)
      assert.strictEqual(program.output(), `bailiwick: ${why}\n`)
      const migrated = yield* cli(env, "migrate")
      assert.deepStrictEqual([migrated.code, migrated.output], [
        1,
        `cannot use the database at ${place}${new URL(app).pathname}: ${why}\n`,
      ])
      const ownerOnly = yield* cli({ ...env, DATABASE_URL: direct }, "queues")
      assert.strictEqual(ownerOnly.code, 1)
      assert.include(ownerOnly.output, why)
      const doctor = yield* cli(env, "doctor")
      assert.strictEqual(doctor.code, 1)
      assert.include(doctor.output, why)
    }).pipe(Effect.scoped), 240_000)
})
