/** The sample product as a program of its own, beside the transmitter. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { sqliteStore } from "../../sdk/stores/Sqlite.ts"
import { SigningKeys } from "../../services/lifecycle/SigningKeys.ts"
import { EmbeddedIssuer } from "../../src/embedded/EmbeddedIssuer.ts"
import { Server } from "../../src/http/Server.ts"
import { home, start } from "../support/Processes.ts"
import { access, issuer, person } from "../support/TestIdentity.ts"
import { lives } from "./Lives.ts"
import { fixture, scene } from "./KitFixture.ts"

layer(fixture, { excludeTestServices: true })("the sample product", (it) => {
  it.effect("names the variable that it lacks in one line", () =>
    Effect.gen(function* () {
      const program = yield* start({ module: "examples/product/main.ts", env: { PROJECT_ID: "", BAILIWICK_URL: "x" } })
      assert.strictEqual(yield* program.exited, 1)
      assert.strictEqual(program.output(), "PROJECT_ID is not set\n")
    }))

  it.effect("admits a person with Access; after a kill it catches up with a suspension, without a snapshot", () =>
    Effect.gen(function* () {
      const { asking, institution, project } = yield* scene
      const pat = yield* person()
      yield* access(institution, project, pat)
      const keys = yield* SigningKeys
      yield* keys.ensure
      const { clientId } = asking
      const { mintAccessToken } = yield* EmbeddedIssuer
      const folder = yield* home
      const { url } = yield* Server
      const env = {
        BAILIWICK_URL: url,
        LIFECYCLE_ISSUER: "http://127.0.0.1:8080/lifecycle",
        PROJECT_ID: project,
        LIFECYCLE_TOKEN: yield* mintAccessToken({ subject: clientId, clientId, audience: "service-lifecycle" }),
        LIFECYCLE_PINS: (yield* keys.jwks).keys.map(({ kid }) => kid).join(","),
        INSTALLED_VERSION: "1",
        PRODUCT_DB: `${folder}/product.db`,
        PRODUCT_PORT: "0",
      }
      const enter = (origin: string) =>
        Effect.promise(async () => {
          const answer = await fetch(`${origin}/enter?${new URLSearchParams({ issuer, subject: pat })}`)
          return `${answer.status} ${JSON.stringify(await answer.json())}`
        })

      const first = yield* start({ module: "examples/product/main.ts", env })
      const [, origin] = yield* first.line(/product on (\S+)/)
      yield* first.line(/"opened"/)
      assert.match(yield* enter(origin!), /^200 .*"role":"user"/)
      yield* first.kill("SIGKILL")
      yield* first.exited

      yield* person({ id: pat, version: 2, status: "suspended" })
      const second = yield* start({ module: "examples/product/main.ts", env })
      const [, anew] = yield* second.line(/product on (\S+)/)
      yield* second.line(/"applied","events":1/)
      assert.strictEqual(yield* enter(anew!), `403 {"may":false,"because":"account_disabled"}`)
      assert.notMatch(second.output(), /snapshot|unacknowledged/)
      yield* second.kill("SIGTERM")
      yield* second.exited
      assert.notMatch(second.output(), /Error/)
    }))

  it.effect(
    "killed in its transaction, and after a commit, it ends equal to the transmitter",
    () =>
      Effect.gen(function* () {
        const made = yield* scene
        const file = join(yield* home, "product.db")
        const database = yield* Effect.acquireRelease(
          Effect.sync(() => new DatabaseSync(file)),
          (database) => Effect.sync(() => database.close()),
        )
        // The program writes to the same file.
        database.exec("pragma busy_timeout = 10000")
        const store = sqliteStore(database)
        yield* Effect.promise(() => store.prepare())
        const { killed, survives } = yield* lives(made, store, { PRODUCT_DB: file })
        for (const fault of ["applied:1", "committed:3", "applied:2"]) yield* killed(fault)
        yield* survives()
      }),
    300_000,
  )
})
