import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { createServer } from "node:http"
import { inject } from "vitest"
import { freePort } from "../../../src/embedded/FreePorts.ts"
import * as Processes from "../../support/Processes.ts"

const says = Effect.fnUntraced(function* (env: Record<string, string>) {
  const home = yield* Processes.home
  const program = yield* Processes.start({ env: { ...env, BAILIWICK_HOME: home, PORT: "0" } })
  return [yield* program.exited, program.output()]
}, Effect.scoped)

it.live("a failing start prints its innermost reason in one line, without a secret", () =>
  Effect.gen(function* () {
    const server = createServer()
    const taken = yield* Effect.acquireRelease(
      freePort().pipe(
        Effect.tap((port) => Effect.promise(() => new Promise<void>((done) => server.listen(port, "127.0.0.1", done)))),
      ),
      () => Effect.promise(() => new Promise((done) => server.close(done))),
    )
    const url = new URL(inject("postgresAppUrl"))
    url.password = "the-password"
    const database = { DATABASE_URL: url.href }
    const [refused, unheard] = yield* Effect.all([says(database), says({ ...database, METRICS_PORT: String(taken) })], {
      concurrency: 2,
    })
    assert.deepStrictEqual(refused, [
      1,
      `bailiwick: PostgreSQL: password authentication failed for user "${url.username}"\n`,
    ])
    assert.match(
      String(unheard[1]),
      new RegExp(`^bailiwick: cannot listen on 127.0.0.1:${taken}, .* METRICS_PORT .*\n$`),
    )
  }).pipe(Effect.scoped), 120_000)
