/** `cli reset`: deletes all data of an embedded home, wherever they are, and empties a database for `restore`. */
import { PgClient } from "@effect/sql-pg"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Redacted } from "effect"
import { Reactivity } from "effect/reactivity"
import { chmodSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import process from "node:process"
import { locate } from "../../../src/embedded/PostgresData.ts"
import { isAlive } from "../../../src/embedded/ProcessTable.ts"
import { home as emptyHome } from "../../support/Processes.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { api } from "../../e2e/support/ApiClient.ts"
import { cli, instance } from "../../e2e/support/ProgramInstance.ts"
import { until } from "../../e2e/support/Until.ts"

const keyOf = (home: string): string => JSON.parse(readFileSync(join(home, "demo.json"), "utf8")).accounts.alice.api_key

const started = Effect.fnUntraced(function* (home: string) {
  const env = { BAILIWICK_HOME: home, PORT: "0", LOG_LEVEL: "warn" }
  const program = yield* instance(env)
  yield* program.start()
  return { env, program }
})

const slow = 300_000

describe("cli reset", () => {
  it.live(
    "refuses while an instance runs or without --yes, keeps foreign files and the key ring, and survives a kill",
    () =>
      Effect.gen(function* () {
        const home = yield* emptyHome
        const { env, program } = yield* started(home)
        const type = (...args: ReadonlyArray<string>) => cli(env, ...args)
        const busy = yield* type("reset", "--yes")
        assert.strictEqual(busy.code, 1)
        assert.include(busy.output, `is in use by process ${program.pid()}: stop it`)
        assert.strictEqual((yield* api(program.origin).get("/ready")).status, 200)

        // Killed, it leaves its servers running: they end before their data do.
        yield* program.end("SIGKILL")
        const unasked = yield* type("reset")
        assert.strictEqual(unasked.code, 1)
        assert.match(unasked.output, /nothing was removed: standard input is no terminal to confirm at, add --yes\n$/)
        const data = Option.getOrThrow(yield* locate(home))
        assert.isTrue(existsSync(join(data, "PG_VERSION")))
        const server = Number(readFileSync(join(data, "postmaster.pid"), "utf8").split("\n")[0])
        writeFileSync(join(home, "my backup"), "mine")
        const ring = readFileSync(join(home, "keys.json"), "utf8")
        const done = yield* type("reset", "--yes")
        assert.strictEqual(done.code, 0, done.output)
        assert.include(done.output, `removed; left in ${home}: keys.json, my backup\n`)
        assert.deepStrictEqual(readdirSync(home), ["keys.json", "my backup"])
        assert.isFalse(existsSync(data))
        assert.isFalse(isAlive(server))
        assert.strictEqual(readFileSync(join(home, "keys.json"), "utf8"), ring)
        assert.include((yield* type("reset", "--yes")).output, `nothing to remove in ${home}\n`)

        // Killed after the data were set aside: a start makes an empty database and deletes the rest.
        const again = yield* started(home)
        const key = keyOf(home)
        yield* again.program.end("SIGTERM")
        renameSync(data, join(home, "postgres.old-0123456789ab"))
        yield* again.program.start()
        assert.notStrictEqual(keyOf(home), key)
        assert.isFalse(existsSync(join(home, "postgres.old-0123456789ab")))
        yield* again.program.end("SIGTERM")
        renameSync(data, join(home, "postgres.old-0123456789ab"))
        rmSync(join(home, "my backup"))
        const all = yield* type("reset", "--yes", "--keys")
        assert.strictEqual(all.code, 0, all.output)
        assert.include(all.output, `removed, ${home} as well\n`)
        assert.isFalse(existsSync(home))
        assert.include((yield* type("reset", "--yes")).output, `nothing to remove in ${home}\n`)
      }).pipe(Effect.scoped),
    slow,
  )

  it.live("leaves a database alone that is not the home's, and says what to do", () =>
    Effect.gen(function* () {
      const home = yield* emptyHome
      const { url } = yield* TestDatabase.make
      const refused = yield* cli({ BAILIWICK_HOME: home, DATABASE_URL: Redacted.value(url) }, "reset", "--yes")
      assert.strictEqual(refused.code, 1)
      assert.match(
        refused.output,
        /^DATABASE_URL names 127\.0\.0\.1:\d+\/test_\w+, which is not the home's: drop that database/,
      )
      assert.notInclude(refused.output, "password")
    }).pipe(Effect.scoped), slow)

  it.live(
    "with --database makes room for a backup: streams stay, and the installation opens by itself",
    () =>
      Effect.gen(function* () {
        const home = yield* emptyHome
        const { env, program } = yield* started(home)
        const type = (...args: ReadonlyArray<string>) => cli(env, ...args)
        const key = keyOf(home)
        const asAlice = api(program.origin, { authorization: `Bearer ${key}` })
        const made = yield* asAlice.post("/v1/api-keys", { name: "before", permissions: ["send"] })
        assert.strictEqual(made.status, 201, made.text)
        const file = join(home, "backup")
        assert.strictEqual((yield* type("backup", file)).code, 0)
        assert.strictEqual((yield* asAlice.delete(`/v1/api-keys/${made.json.id}`)).status, 204)
        const { database_url } = JSON.parse(readFileSync(join(home, "runtime.json"), "utf8"))
        yield* Effect.scoped(Effect.gen(function* () {
          const sql = yield* PgClient.make({ url: Redacted.make(database_url), maxConnections: 1 })
          const waiting = sql<{ n: number }>`select count(*)::int as n from outbox where published_at is null`
          yield* until("the streams know", waiting, ([row]) => row!.n === 0)
        })).pipe(Effect.provide(Reactivity.layer))
        yield* program.end("SIGTERM")

        const full = yield* type("restore", file)
        assert.match(full.output, /the database is not empty.*"npx -y deno@2\.9\.6 task cli reset --database"/)
        const gone = yield* type("reset", "--database", "--yes")
        assert.strictEqual(gone.code, 0, gone.output)
        assert.isFalse(existsSync(join(home, "postgres.json")))
        for (const name of ["nats", "keys.json", "demo.json", "backup"]) {
          assert.isTrue(existsSync(join(home, name)), name)
        }
        const put = yield* type("restore", file)
        assert.strictEqual(put.code, 0, put.output)
        yield* program.start()
        yield* until("open", Effect.delay(type("installation", "show"), "2 seconds"), ({ output }) =>
          /^epoch 2, open/.test(output))
        assert.strictEqual((yield* asAlice.get("/v1/webhooks/")).status, 200)
        // Revoked after the backup was made: the streams say so.
        const revoked = api(program.origin, { authorization: `Bearer ${made.json.key}` })
        assert.strictEqual((yield* revoked.get("/v1/webhooks/")).status, 401)
        yield* program.end("SIGTERM")
      }).pipe(Effect.scoped),
    slow,
  )

  it.live.skipIf(process.getuid?.() !== 0)(
    "removes the data that the database's user has outside of a home that it cannot enter",
    () =>
      Effect.gen(function* () {
        const closed = yield* emptyHome
        chmodSync(closed, 0o700)
        const home = join(closed, "home")
        const { env, program } = yield* started(home)
        const data = Option.getOrThrow(yield* locate(home))
        assert.notInclude(data, home)
        yield* program.end("SIGTERM")
        // Killed after the data were set aside: a start makes the empty database in the same place.
        renameSync(data, join(dirname(data), "postgres.old-0123456789ab"))
        yield* program.start()
        assert.deepStrictEqual(yield* locate(home), Option.some(data))
        assert.deepStrictEqual(readdirSync(dirname(data)), ["postgres"])
        yield* program.end("SIGTERM")
        // And so that only the data were removed.
        renameSync(data, join(dirname(data), "postgres.old-0123456789ab"))
        const done = yield* cli(env, "reset", "--yes", "--keys")
        assert.strictEqual(done.code, 0, done.output)
        assert.include(done.output, `${dirname(data)}\n`)
        assert.isFalse(existsSync(dirname(data)))
        assert.isFalse(existsSync(home))
      }).pipe(Effect.scoped),
    slow,
  )
})
