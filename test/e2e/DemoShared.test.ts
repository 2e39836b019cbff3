/** Two processes on one database: a start without DEMO, and the demo that the other one serves. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { home as emptyHome } from "../support/Processes.ts"
import { api } from "./support/ApiClient.ts"
import { instance } from "./support/ProgramInstance.ts"

const fileIn = (home: string, name: string) => JSON.parse(readFileSync(join(home, name), "utf8"))

describe("the demo of a database that two processes use", () => {
  it.live(
    "goes on while a process serves it, and ends with the next start without DEMO",
    () =>
      Effect.gen(function* () {
        const [first, second] = [yield* emptyHome, yield* emptyHome]
        const demo = yield* instance({ BAILIWICK_HOME: first, PORT: "0", LOG_LEVEL: "warn" })
        yield* demo.start()
        const { database_owner_url, database_url, nats_url } = fileIn(first, "runtime.json")
        const key = fileIn(first, "demo.json").accounts.alice.api_key
        const asAlice = (origin: () => string) =>
          Effect.map(api(origin, { authorization: `Bearer ${key}` }).get("/v1/api-keys/"), ({ status }) => status)
        const shared = { DATABASE_URL: database_url, DATABASE_OWNER_URL: database_owner_url, NATS_URL: nats_url }
        const keys = { BAILIWICK_KEYS_FILE: join(first, "keys.json") }
        const plain = yield* instance({ ...shared, ...keys, BAILIWICK_HOME: second, PORT: "0", LOG_LEVEL: "warn" })
        yield* plain.start()
        assert.match(plain.output(), /another process serves the demo of this database/)
        assert.deepStrictEqual([yield* asAlice(demo.origin), yield* asAlice(plain.origin)], [200, 200])

        // The demo's process reported its end; a process that starts then finds that none serves the demo.
        assert.strictEqual(yield* plain.end("SIGTERM"), 0)
        assert.strictEqual(yield* demo.end("SIGTERM"), 0)
        yield* demo.start({ DEMO: "false" })
        assert.notMatch(demo.output(), /another process serves the demo/)
        assert.strictEqual(yield* asAlice(demo.origin), 401)
        yield* demo.end("SIGTERM")
        yield* demo.start({ DEMO: "true" })
        assert.strictEqual(yield* asAlice(demo.origin), 200)
      }).pipe(Effect.scoped),
    240_000,
  )
})
