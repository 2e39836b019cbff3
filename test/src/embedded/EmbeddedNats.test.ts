import { jetstream, jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Redacted } from "effect"
import { statSync } from "node:fs"
import { join } from "node:path"
import process from "node:process"
import * as EmbeddedNats from "../../../src/embedded/EmbeddedNats.ts"
import { isAlive } from "../../../src/embedded/ProcessTable.ts"
import * as Processes from "../../support/Processes.ts"

const connection = (url: Redacted.Redacted, token?: string) =>
  Effect.acquireRelease(
    Effect.tryPromise(() => {
      const { host, username } = new URL(Redacted.value(url))
      return connect({ servers: host, token: token ?? username, reconnect: false })
    }),
    (connection) => Effect.promise(() => connection.close()),
  )

const stored = (url: Redacted.Redacted) =>
  Effect.scoped(Effect.flatMap(connection(url), (connection) =>
    Effect.promise(async () => {
      const manager = await jetstreamManager(connection)
      await manager.streams.add({ name: "KEPT", subjects: ["kept"] })
      await jetstream(connection).publish("kept", "one")
      return (await manager.streams.info("KEPT")).state.messages
    })))

/** The name of a server, by which the relay sees that it may have lost messages. */
const nameOf = (url: Redacted.Redacted) =>
  Effect.scoped(Effect.map(connection(url), (connection) => connection.info!.server_name))

describe("EmbeddedNats", () => {
  it.live("keeps its streams over an orderly stop and over a kill, on the same port", () =>
    Effect.gen(function* () {
      const home = yield* Processes.home
      const first = yield* Effect.scoped(Effect.gen(function* () {
        const nats = yield* EmbeddedNats.start({ home })
        assert.isBelow(nats.port, 32_768)
        assert.strictEqual(yield* stored(nats.url), 1)
        return { ...nats, name: yield* nameOf(nats.url) }
      }))
      assert.isFalse(isAlive(first.pid))
      const second = yield* EmbeddedNats.start({ home, port: first.port })
      assert.strictEqual(yield* stored(second.url), 2)
      assert.strictEqual(yield* nameOf(second.url), first.name)
      process.kill(second.pid, "SIGKILL")
      yield* second.exited
      const third = yield* EmbeddedNats.start({ home, port: first.port })
      assert.strictEqual(yield* stored(third.url), 3)
      assert.notStrictEqual(yield* nameOf(third.url), first.name)
      assert.strictEqual(Redacted.value(third.url), Redacted.value(first.url))
    }).pipe(Effect.scoped))

  it.live("requires its token, which only this user can read, and runs beside another server", () =>
    Effect.gen(function* () {
      const home = yield* Processes.home
      const nats = yield* EmbeddedNats.start({ home })
      const other = yield* EmbeddedNats.start({ home: yield* Processes.home })
      assert.isTrue(Exit.isFailure(yield* Effect.exit(connection(nats.url, "guessed"))))
      assert.isTrue(
        Exit.isFailure(yield* Effect.exit(connection(nats.url, new URL(Redacted.value(other.url)).username))),
      )
      for (const file of ["nats.token", "nats/nats.conf"]) {
        assert.strictEqual(statSync(join(home, file)).mode & 0o777, 0o600)
      }
    }).pipe(Effect.scoped))

  it.live("prints what to type where nats-server is missing and cannot be fetched", () =>
    Effect.gen(function* () {
      const home = yield* Processes.home
      const program = yield* Processes.start({
        module: "test/src/embedded/fixtures/Hold.ts",
        args: [home],
        env: { PATH: home, XDG_CACHE_HOME: home },
      })
      yield* program.line(/nats-server is not installed.*or set NATS_URL/)
      assert.notStrictEqual(yield* program.exited, 0)
    }).pipe(Effect.scoped))
})
