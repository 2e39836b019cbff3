/** A home from outside: a program with both servers in it that is stopped, killed, or met by another program. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Option } from "effect"
import { chmodSync, existsSync, mkdirSync, readdirSync, statSync } from "node:fs"
import { join } from "node:path"
import process from "node:process"
import * as Home from "../../../src/embedded/Home.ts"
import { isAlive } from "../../../src/embedded/ProcessTable.ts"
import * as Processes from "../../support/Processes.ts"
import { ordinary } from "./fixtures/Ordinary.ts"

const hold = Effect.fn(function* (home: string, options?: Partial<Processes.ProgramOptions>) {
  const program = yield* Processes.start({
    module: "test/src/embedded/fixtures/Hold.ts",
    args: [home],
    env: {},
    ...options,
  })
  const [, own, postgres, nats] = yield* program.line(/held by (\d+) with (\d+) and (\d+)/)
  return { program, pid: Number(own), servers: [Number(postgres), Number(nats)] }
})

describe("a home", () => {
  it.live("prints its address, and leaves no process after a SIGTERM", () =>
    Effect.gen(function* () {
      const home = yield* Processes.home
      const { program, pid, servers } = yield* hold(home)
      assert.strictEqual(Option.getOrThrow(yield* Home.running(home)).pid, pid)
      assert.strictEqual(statSync(join(home, "runtime.json")).mode & 0o777, 0o600)
      yield* program.kill("SIGTERM")
      yield* program.exited
      assert.deepStrictEqual(servers.filter(isAlive), [])
      assert.isFalse(existsSync(join(home, "runtime.json")))
      assert.isFalse(existsSync(join(home, "hold.json")))
    }).pipe(Effect.scoped))

  it.live("starts again after a SIGKILL left both servers running", () =>
    Effect.gen(function* () {
      const home = yield* Processes.home
      const killed = yield* hold(home)
      yield* killed.program.kill("SIGKILL")
      yield* killed.program.exited
      assert.deepStrictEqual(killed.servers.filter(isAlive), killed.servers)
      assert.isTrue(Option.isNone(yield* Home.running(home)))
      const again = yield* hold(home)
      assert.deepStrictEqual(killed.servers.filter(isAlive), [])
      assert.deepStrictEqual(again.servers.filter(isAlive), again.servers)
    }).pipe(Effect.scoped))

  it.live("is held by one program at a time", () =>
    Effect.gen(function* () {
      const home = yield* Processes.home
      yield* Home.open(home)
      const second = yield* Processes.start({ module: "test/src/embedded/fixtures/Hold.ts", args: [home], env: {} })
      yield* second.line(new RegExp(`in use by process ${process.pid}`))
      assert.notStrictEqual(yield* second.exited, 0)
      assert.isTrue(Exit.isFailure(yield* Effect.exit(Effect.scoped(Home.open(home)))))
      assert.isTrue(existsSync(join(home, "hold.json")))
    }).pipe(Effect.scoped))

  it.live("is refused in a folder shared by all users, and leaves nothing where a file cannot be written", () =>
    Effect.gen(function* () {
      const folder = yield* Processes.home
      const shared = join(folder, "shared")
      mkdirSync(shared)
      chmodSync(shared, 0o1777)
      const { message } = yield* Effect.flip(Home.prepare(shared))
      assert.strictEqual(
        message,
        `cannot use BAILIWICK_HOME ${shared}: it is shared by all users, name a folder of its own`,
      )
      assert.strictEqual(statSync(shared).mode & 0o7777, 0o1777)
      assert.throws(() => Home.writePrivate(shared, "text"))
      assert.deepStrictEqual(readdirSync(folder), ["shared"])
    }).pipe(Effect.scoped))

  it.live("serves an ordinary user", () =>
    Effect.gen(function* () {
      const { home, options } = yield* ordinary
      const { program, servers } = yield* hold(home, options)
      assert.strictEqual(statSync(home).mode & 0o777, 0o700)
      yield* program.kill("SIGINT")
      yield* program.exited
      assert.deepStrictEqual(servers.filter(isAlive), [])
    }).pipe(Effect.scoped))
})
