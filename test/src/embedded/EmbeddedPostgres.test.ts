import { PgClient } from "@effect/sql-pg"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Redacted } from "effect"
import { Reactivity } from "effect/reactivity"
import { readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import process from "node:process"
import { canEnter } from "../../../src/embedded/PostgresUser.ts"
import * as EmbeddedPostgres from "../../../src/embedded/EmbeddedPostgres.ts"
import { isAlive } from "../../../src/embedded/ProcessTable.ts"
import * as Processes from "../../support/Processes.ts"

const client = (url: Redacted.Redacted) =>
  PgClient.make({ url, maxConnections: 1 }).pipe(Effect.provide(Reactivity.layer))

const exited = (pid: number) => assert.isFalse(isAlive(pid), `process ${pid} is still there`)

describe("EmbeddedPostgres", () => {
  it.live("starts on an empty home, with a weaker role for the program, and leaves no process", () =>
    Effect.gen(function* () {
      const home = yield* Processes.home
      const started = yield* Effect.scoped(Effect.gen(function* () {
        const postgres = yield* EmbeddedPostgres.start({ home })
        assert.isBelow(postgres.port, 32_768)
        const app = yield* client(postgres.appUrl)
        const [who] = yield* app<{ role: string; super: boolean; version: number; fsync: string; jit: string }>`
          select current_user::text as role, rolsuper as super, current_setting('fsync') as fsync,
            current_setting('server_version_num')::int / 10000 as version, current_setting('jit') as jit
          from pg_roles where rolname = current_user`
        assert.deepStrictEqual(who, { role: "bailiwick_app", super: false, version: 18, fsync: "on", jit: "off" })
        assert.isTrue(Exit.isFailure(yield* Effect.exit(app`create table mine (id int)`)))
        const owner = yield* client(postgres.ownerUrl)
        yield* owner`create table kept (id int)`
        yield* owner`insert into kept values (42)`
        // One SCRAM iteration for the random passwords of its own roles; the default for passwords that people choose.
        yield* owner`create role somebody password 'guessable'`
        const rounds = yield* owner<{ name: string; rounds: string }>`
          select rolname as name, substring(rolpassword from '^SCRAM-SHA-256\\$([0-9]+):') as rounds
          from pg_authid where rolpassword is not null order by rolname`
        assert.deepStrictEqual(rounds.map(({ name, rounds }) => `${name} ${rounds}`), [
          ...["bailiwick_app 1", "bailiwick_owner 1", "somebody 4096"],
        ])
        yield* owner`drop role somebody`
        // Each database is 300 files that a first start writes.
        const databases = yield* owner<{ name: string }>`select datname as name from pg_database order by datname`
        assert.deepStrictEqual(databases.map(({ name }) => name), ["bailiwick", "template0", "template1"])
        return postgres
      }))
      exited(started.pid)
      assert.strictEqual(statSync(join(home, "postgres.json")).mode & 0o777, 0o600)
      assert.strictEqual(statSync(home).mode & 0o007, 0)

      const kept = yield* Effect.scoped(Effect.gen(function* () {
        const postgres = yield* EmbeddedPostgres.start({ home })
        assert.strictEqual(Redacted.value(postgres.appUrl).split("@")[0], Redacted.value(started.appUrl).split("@")[0])
        const sql = yield* client(postgres.ownerUrl)
        return yield* sql`select id from kept`
      }))
      assert.deepStrictEqual(kept, [{ id: 42 }])
    }).pipe(Effect.scoped))

  it.live("refuses a wrong password", () =>
    Effect.gen(function* () {
      const postgres = yield* EmbeddedPostgres.start({ home: yield* Processes.home, throwaway: true })
      const url = new URL(Redacted.value(postgres.appUrl))
      url.password = "guessed"
      const answer = yield* Effect.exit(Effect.flatMap(client(Redacted.make(url.href)), (sql) => sql`select 1`))
      assert.isTrue(Exit.isFailure(answer))
    }).pipe(Effect.scoped))

  it.live("starts again on the same port after a kill of the server, and runs beside another", () =>
    Effect.gen(function* () {
      const home = yield* Processes.home
      const first = yield* EmbeddedPostgres.start({ home, throwaway: true })
      const other = yield* EmbeddedPostgres.start({ home: yield* Processes.home, throwaway: true })
      process.kill(first.pid, "SIGKILL")
      yield* first.exited
      const again = yield* EmbeddedPostgres.start({ home, throwaway: true, port: first.port })
      assert.strictEqual(again.port, first.port)
      assert.notStrictEqual(again.pid, first.pid)
      for (const { appUrl } of [again, other]) {
        const sql = yield* client(appUrl)
        yield* sql`select 1`
      }
    }).pipe(Effect.scoped))

  it.live("starts where the pid file now names another home's server, and spares that server", () =>
    Effect.gen(function* () {
      const other = yield* EmbeddedPostgres.start({ home: yield* Processes.home, throwaway: true })
      const home = yield* Processes.home
      const first = yield* EmbeddedPostgres.start({ home, throwaway: true })
      const data: string = JSON.parse(readFileSync(join(home, "postgres.json"), "utf8")).data
      const file = join(data, "postmaster.pid")
      process.kill(first.pid, "SIGKILL")
      yield* first.exited
      writeFileSync(file, readFileSync(file, "utf8").replace(String(first.pid), String(other.pid)))
      const again = yield* EmbeddedPostgres.start({ home, throwaway: true })
      for (const { appUrl } of [again, other]) {
        const sql = yield* client(appUrl)
        yield* sql`select 1`
      }
    }).pipe(Effect.scoped))

  it.live("keeps its data where its user can reach them, whatever the folders above the home allow", () =>
    Effect.gen(function* () {
      const above = yield* Processes.home
      const home = join(above, "home")
      yield* Effect.scoped(Effect.gen(function* () {
        const postgres = yield* EmbeddedPostgres.start({ home, throwaway: true })
        const sql = yield* client(postgres.appUrl)
        yield* sql`select 1`
      }))
      const data: string = JSON.parse(readFileSync(join(home, "postgres.json"), "utf8")).data
      const { uid, gid } = statSync(data)
      const reachable = process.getuid?.() !== 0 || (yield* canEnter({ uid, gid }, above))
      if (!reachable) rmSync(dirname(data), { recursive: true })
      assert.strictEqual(data === join(home, "postgres"), reachable)
      assert.strictEqual(statSync(above).mode & 0o777, 0o700)
    }).pipe(Effect.scoped))
})
