/** What a running program's port for metrics serves, and the page that describes it. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { readFileSync } from "node:fs"
import { freePort } from "../../src/embedded/FreePorts.ts"
import { home } from "../support/Processes.ts"
import { instance } from "./support/ProgramInstance.ts"

it.live(
  "requests are measured by route template, and docs/metrics.md has every scraped metric and its type",
  () =>
    Effect.gen(function* () {
      const port = yield* freePort()
      const program = yield* instance({ BAILIWICK_HOME: yield* home, PORT: "0", METRICS_PORT: `${port}` })
      yield* program.start()
      const get = (url: string, method = "GET") =>
        Effect.promise(async () => {
          const response = await fetch(url, { method })
          return { status: response.status, text: await response.text() }
        })
      yield* get(`${program.origin()}/health`)
      yield* get(`${program.origin()}/no/such/secret-path`)
      yield* get(`${program.origin()}/v1/webhooks/secret-id`)
      const { text } = yield* get(`http://127.0.0.1:${port}/metrics`)
      const counted = (method: string, route: string, status: string) =>
        text.split("\n").filter((line) =>
          line.startsWith("bailiwick_http_request_seconds_count{") && line.includes(`method="${method}"`) &&
          line.includes(`route="${route}"`) && line.includes(`status="${status}"`)
        ).length
      assert.strictEqual(counted("GET", "/health", "2xx"), 1)
      assert.strictEqual(counted("GET", "unknown", "4xx"), 1)
      assert.strictEqual(text.split("\n").filter((line) => /_count\{.*route="\/v1\/webhooks\//.test(line)).length, 1)
      assert.notInclude(text, "secret-")
      const page = new Map(
        [...readFileSync("docs/metrics.md", "utf8").matchAll(/^\| `(bailiwick_\w+)` \| (\w+) \|/gm)]
          .map(([, name, type]) => [name!, type!]),
      )
      const scraped = [...text.matchAll(/^# TYPE (bailiwick_\w+) (\w+)$/gm)]
      assert.isAbove(scraped.length, 0)
      for (const [, name, type] of scraped) assert.strictEqual(page.get(name!), type, name)
    }).pipe(Effect.scoped),
  120_000,
)
