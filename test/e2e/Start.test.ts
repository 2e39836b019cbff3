/** A start's messages about its configuration, and the files that a failing start leaves. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { existsSync, readdirSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { home as emptyHome, start } from "../support/Processes.ts"
import { api } from "./support/ApiClient.ts"
import { cli, instance } from "./support/ProgramInstance.ts"

/** A loopback port with another program's listener. */
const takenPort = Effect.map(
  Effect.acquireRelease(
    Effect.callback<ReturnType<typeof createServer>>((resume) => {
      const server = createServer()
      // From 20000 on, below the ports of outgoing connections.
      const listen = () => server.listen(20_000 + Math.floor(Math.random() * 10_000), "127.0.0.1")
      server.on("error", listen).once("listening", () => resume(Effect.succeed(server)))
      listen()
    }),
    (server) => Effect.sync(() => server.close()),
  ),
  (server) => (server.address() as { readonly port: number }).port,
)

const said = (env: Record<string, string>) =>
  Effect.gen(function* () {
    const program = yield* start({ env, sources: true })
    const code = yield* program.exited
    return { code, lines: program.output().trim().split("\n") }
  })

describe("a start", () => {
  it.live("finds a taken port before it makes anything in its home", () =>
    Effect.gen(function* () {
      const port = yield* takenPort
      const folder = yield* emptyHome
      for (
        const [name, env] of [
          ["PORT", { PORT: `${port}` }],
          ["CLUSTER_PORT", { PORT: "0", CLUSTER: "on", CLUSTER_PORT: `${port}` }],
        ] as const
      ) {
        const fault =
          `bailiwick: cannot listen on 127.0.0.1:${port}, another program does: end it, or set ${name} to ` +
          "another port"
        const home = join(folder, name)
        assert.deepStrictEqual(yield* said({ ...env, BAILIWICK_HOME: home }), { code: 1, lines: [fault] })
        assert.isFalse(existsSync(home))
      }
      const metrics = yield* said({ PORT: "0", METRICS_PORT: `${port}`, BAILIWICK_HOME: join(folder, "metrics") })
      assert.strictEqual(metrics.code, 1)
      assert.lengthOf(metrics.lines, 1)
      assert.match(metrics.lines[0]!, new RegExp(`^bailiwick: cannot listen on 127.0.0.1:${port}, .* METRICS_PORT `))
      assert.deepStrictEqual(readdirSync(folder), [])
    }).pipe(Effect.scoped), 120_000)

  it.live("names every wrong variable on a line of its own", () =>
    Effect.gen(function* () {
      const { code, lines } = yield* said({ PORT: "http", CLUSTER: "maybe", BAILIWICK_HOME: yield* emptyHome })
      assert.strictEqual(code, 1)
      assert.deepStrictEqual(lines.map((line) => line.split(":", 2).join(":")), [
        "bailiwick: PORT",
        "bailiwick: CLUSTER",
      ])
    }).pipe(Effect.scoped), 60_000)

  it.live(
    "warns that no caller can sign in, as /ready does, and of unknown variables; the doctor reports both",
    () =>
      Effect.gen(function* () {
        const env = { BAILIWICK_HOME: yield* emptyHome, PORT: "0", HOST: "0.0.0.0", MANAGEMENT_READ_RATES: "1" }
        const program = yield* instance(env)
        yield* program.start()
        assert.match(program.output(), /no caller can sign in: DEMO is off and no issuer is configured/)
        assert.match(program.output(), /MANAGEMENT_READ_RATES is not a variable .* did you mean MANAGEMENT_READ_RATE\?/)
        const port = new URL(program.origin()).port
        const { json, status } = yield* api(() => `http://127.0.0.1:${port}`).get("/ready")
        assert.deepStrictEqual([status, json.status], [200, "ready"])
        assert.match(json.note, /^no caller can sign in/)
        const { output } = yield* cli(env, "doctor")
        assert.match(output, /warn +variables +no caller can sign in/i)
        assert.match(output, /warn +variables +MANAGEMENT_READ_RATES is not a variable of bailiwick/i)
      }).pipe(Effect.scoped),
    120_000,
  )
})
