/**
 * The program on each nats-server that this machine has: all on the PATH, and the one that the program would embed. Each is
 * killed under load and started again on its files, with `sync_interval: always` where it knows that.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Redacted, Scope } from "effect"
import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, writeFileSync } from "node:fs"
import { delimiter, join } from "node:path"
import process from "node:process"
import * as Children from "../../src/embedded/ChildProcess.ts"
import { freePort } from "../../src/embedded/FreePorts.ts"
import { prepare } from "../../src/embedded/Home.ts"
import { natsBinary, syncsAlways } from "../../src/embedded/NatsBinary.ts"
import { fixture } from "../e2e/support/ProgramFixture.ts"
import { cli } from "../e2e/support/ProgramInstance.ts"
import { unanswered } from "../support/Broker.ts"
import { home as emptyHome } from "../support/Processes.ts"
import { until } from "../e2e/support/Until.ts"
import { brisk } from "./support/Second.ts"
import { close, databaseOf, ended, traffic } from "./support/Traffic.ts"

const versionOf = (file: string) => execFileSync(file, ["--version"], { encoding: "utf8" }).trim()

/** One program of each version. */
const programs = Effect.map(Effect.flatMap(emptyHome, natsBinary), (embedded) => {
  const onPath = (process.env["PATH"] ?? "").split(delimiter).map((folder) => join(folder, "nats-server"))
  return new Map([...onPath.filter(existsSync), embedded].map((file) => [versionOf(file), file]))
})

/** A server with JetStream on its own files, started. `again` kills it and starts it anew. */
const broker = Effect.fnUntraced(function* (file: string) {
  const home = yield* prepare(yield* emptyHome)
  const [port, token, store, conf] = [yield* freePort(), crypto.randomUUID(), join(home, "store"), join(home, "conf")]
  mkdirSync(store)
  const sync = (yield* syncsAlways(file)) ? ", sync_interval: always" : ""
  writeFileSync(
    conf,
    [
      `listen: "127.0.0.1:${port}"`,
      `jetstream { store_dir: ${JSON.stringify(store)}${sync} }`,
      `authorization { token: "${token}", timeout: 15 }`,
    ].join("\n"),
  )
  const start = Effect.gen(function* () {
    const scope = yield* Scope.make()
    yield* Children.serve({ file, args: ["-c", conf], cwd: home }, join(home, "log"), [["SIGKILL", "5 seconds"]]).pipe(
      Scope.provide(scope),
    )
    return scope
  })
  let running = yield* start
  yield* Effect.addFinalizer(() => Effect.suspend(() => Scope.close(running, Exit.void)))
  const again = Effect.gen(function* () {
    yield* Scope.close(running, Exit.void)
    running = yield* start
  })
  return { url: Redacted.make(`nats://${token}@127.0.0.1:${port}`), again }
})

const tried = Effect.fnUntraced(function* (version: string, file: string) {
  const { again, url } = yield* broker(file)
  const around = yield* fixture(brisk, { natsUrl: url })
  const flow = yield* traffic(around)
  yield* flow.insist(200)
  yield* Effect.all([flow.insist(200), again], { concurrency: 2 })
  // Only the broker has these when it is killed.
  yield* around.instance.end("SIGTERM")
  yield* flow.insist(200)
  yield* again
  yield* around.instance.start()
  yield* flow.insist(100)
  yield* until("every event answered for", Effect.delay(unanswered(url), "1 second"), (left) => left === 0)
  yield* ended(flow)
  yield* close(flow).pipe(Effect.provide(databaseOf(around)))
  const [, number] = /v([\d.]+)/.exec(version)!
  const { output } = yield* cli(around.env, "doctor")
  assert.include(output, number!)
  console.log(`${version}: ${flow.acknowledged.length} events, ${flow.target.hits.length} requests`)
}, Effect.scoped)

describe("each nats-server of this machine", () => {
  it.live("carries the events through a kill, and loses none that it acknowledged", () =>
    Effect.gen(function* () {
      const found = [...yield* programs]
      assert.isNotEmpty(found)
      for (const [version, file] of found) yield* tried(version, file)
    }).pipe(Effect.scoped))
})
