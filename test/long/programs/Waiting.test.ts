/** Starts without a database or with a silent broker: servers that the program waits for, restarts, or refuses. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { Buffer } from "node:buffer"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { awaited } from "../../../services/platform/database/Database/Awaited.ts"
import { serveTcp } from "../../services/platform/Outbound/LoopbackServers.ts"
import { keepFrozen } from "../../support/Frozen.ts"
import { ownPostgres } from "../../support/OwnPostgres.ts"
import { home as emptyHome, start } from "../../support/Processes.ts"
import { TestBus } from "../../support/TestBus.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { api } from "../../e2e/support/ApiClient.ts"
import { cli } from "../../e2e/support/ProgramInstance.ts"
import { until } from "../../e2e/support/Until.ts"

const envOf = Effect.fnUntraced(
  function* (database: { readonly url: Redacted.Redacted; readonly ownerUrl: Redacted.Redacted }) {
    return {
      BAILIWICK_HOME: yield* emptyHome,
      PORT: "0",
      DEMO: "false",
      DATABASE_URL: Redacted.value(database.url),
      DATABASE_OWNER_URL: Redacted.value(database.ownerUrl),
      LOG_LEVEL: "warn",
    }
  },
)

const natsPid = (home: string) => Number(readFileSync(join(home, "nats", "pid"), "utf8"))

/** A server that answers that it is starting. */
const startingUp = Buffer.concat([
  Buffer.from([0x45, 0, 0, 0, 0]),
  Buffer.from("SFATAL\0VFATAL\0C57P03\0Mthe database system is starting up\0\0"),
])
startingUp.writeInt32BE(startingUp.length - 1, 1)

const at = (url: Redacted.Redacted, changes: Partial<Pick<URL, "hostname" | "password" | "pathname" | "port">>) =>
  Redacted.make(Object.assign(new URL(Redacted.value(url)), changes).href)

const database = "PostgreSQL at "

describe.concurrent("a start", () => {
  it.live(
    "waits for a PostgreSQL that is away, says so once, and stops at once when asked meanwhile",
    () =>
      Effect.gen(function* () {
        const postgres = yield* ownPostgres
        const { url } = yield* TestBus.make
        const env = { ...(yield* envOf(postgres)), NATS_URL: Redacted.value(url) }
        yield* postgres.kill
        const impatient = yield* start({ env })
        yield* impatient.line(/is away or starting: waiting for it/)
        yield* impatient.kill("SIGTERM")
        assert.strictEqual(yield* impatient.exited, 0)
        const program = yield* start({ env })
        yield* program.line(/is away or starting: waiting for it/)
        yield* postgres.start
        yield* program.line(/bailiwick ready on http/)
        assert.strictEqual(program.output().split(database).length - 1, 1, program.output())
      }).pipe(Effect.scoped),
    240_000,
  )

  it.live("waits for one that is starting, or whose name does not resolve yet", () =>
    Effect.gen(function* () {
      const { url } = yield* TestDatabase.make
      const server = yield* serveTcp((socket) => void socket.end(startingUp))
      const waits = (to: Redacted.Redacted) => Effect.timeoutOption(awaited(to), "2 seconds")
      const starting = yield* waits(at(url, { hostname: "127.0.0.1", port: String(server.port) }))
      assert.strictEqual(starting._tag, "None")
      assert.isAtLeast(server.seen.connections, 2)
      assert.strictEqual((yield* waits(at(url, { hostname: "postgres.invalid" })))._tag, "None")
      yield* awaited(url)
    }).pipe(Effect.scoped))

  it.live(
    "ends at once, with one line, on wrong credentials and on a missing database",
    () =>
      Effect.gen(function* () {
        const made = yield* TestDatabase.make
        const { url: natsUrl } = yield* TestBus.make
        const wrong = [{ password: "wrong" }, { pathname: "/nowhere" }].flatMap((changes) =>
          (["url", "ownerUrl"] as const).map((which) => ({ ...made, [which]: at(made[which], changes) }))
        )
        const programs = yield* Effect.forEach(wrong, (database) =>
          Effect.flatMap(envOf(database), (env) =>
            start({ env: { ...env, NATS_URL: Redacted.value(natsUrl) } })))
        for (const program of programs) {
          assert.strictEqual(yield* program.exited, 1)
          assert.match(
            program.output(),
            /^bailiwick: PostgreSQL: [^\n]*(password authentication failed|does not exist)[^\n]*\n$/,
          )
        }
      }).pipe(Effect.scoped),
    240_000,
  )
})

describe.concurrent("a nats-server that answers nothing", () => {
  it.live(
    "is reported by the doctor, and restarted by the program that embeds it",
    () =>
      Effect.gen(function* () {
        const env = yield* envOf(yield* TestDatabase.make)
        const program = yield* start({ env })
        const [, origin] = yield* program.line(/bailiwick ready on (http:\S+)/)
        const health = api(() => origin!)
        const pid = natsPid(env.BAILIWICK_HOME)
        yield* keepFrozen(pid)
        const { nats_url } = JSON.parse(readFileSync(join(env.BAILIWICK_HOME, "runtime.json"), "utf8"))
        const said = yield* cli({ ...env, NATS_URL: nats_url }, "doctor")
        assert.match(
          said.output,
          /FAIL\s+broker\s+the server at 127\.0\.0\.1:\d+ accepts connections but does not answer/,
        )
        yield* program.line(/the embedded nats-server does not answer: starting it again/)
        yield* until(
          "another process",
          Effect.try(() => natsPid(env.BAILIWICK_HOME)).pipe(Effect.orElseSucceed(() => pid)),
          (now) => now !== pid,
        )
        yield* until("ready again", health.get("/ready"), ({ json }) => json?.status === "ready")
      }).pipe(Effect.scoped),
    240_000,
  )
})
