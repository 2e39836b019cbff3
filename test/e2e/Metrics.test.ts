/** The metrics that a running program's port serves, and the page that describes them. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { readFileSync } from "node:fs"
import { freePort } from "../../src/embedded/FreePorts.ts"
import { mailEvent } from "./support/EventFeed.ts"
import { fixture } from "./support/ProgramFixture.ts"
import { hook } from "./support/ProgramWebhooks.ts"
import { receiver } from "./support/Receiver.ts"
import { documentedMetrics, type MetricTypes, scrape } from "./support/Scrape.ts"
import { until } from "./support/Until.ts"

/** Names of metrics in these files of deploy/: of the series of a histogram, the histogram's. */
const namesIn = (file: string, types: MetricTypes) =>
  new Set(
    [...readFileSync(file, "utf8").matchAll(/\bbailiwick_\w+/g)].map(([name]) => {
      const base = name.replace(/_(bucket|sum|count)$/, "")
      return types.get(base) === "histogram" ? base : name
    }),
  )

const witness = "witness.example.net+26489758+BEQpkwZQBKoeTEj03QFYGUwCNJvMZkzZbkAOommRio1R"

const answers = (path: string) => path === "/well" ? 200 : path === "/refuses" ? 500 : "silence"

it.live(
  "a program's metrics and those of docs/metrics.md are the same, with their types",
  () =>
    Effect.gen(function* () {
      const port = yield* freePort()
      const program = yield* fixture({
        METRICS_PORT: `${port}`,
        WEBHOOKS_TIMEOUT: "3 seconds",
        // A witness that cannot be asked has its gauge, too.
        LOG_WITNESSES: `${witness} http://127.0.0.1:9`,
        SIGNAL_TRANSMITTERS: JSON.stringify([{
          issuer: "https://id.example",
          audience: "https://bailiwick.example",
          jwks_uri: "http://127.0.0.1:9/jwks",
          push_token: "p".repeat(40),
        }, {
          // One that is polled has its gauge.
          issuer: "https://polled.example",
          audience: "https://bailiwick.example",
          jwks_uri: "http://127.0.0.1:9/jwks",
          poll: { endpoint: "http://127.0.0.1:9/poll", token: "p".repeat(40) },
        }]),
      })
      const { api, id } = yield* program.account()
      const target = yield* receiver(program.tls, ({ path }) => answers(path))
      for (const path of ["/well", "/refuses", "/silent"]) yield* hook(api, target, path, ["email.sent"])
      yield* program.feed.events(["1", "2"].map((n) => mailEvent(id, n, "email.sent")))
      yield* api.get("/health")
      yield* api.get("/no/such/secret-path")
      yield* api.get("/v1/webhooks/secret-id")
      const page = documentedMetrics()
      // On a busy machine an answer may come after the timeout: at least one of each.
      const first = (outcome: string) =>
        new RegExp(`^bailiwick_delivery_first_answer_seconds_count\\{outcome="${outcome}"\\} [1-9]`, "m")
      const { text, types } = yield* until(
        "all metrics of the page, and every first attempt",
        scrape(port),
        ({ text, types }) =>
          types.size >= page.size &&
          ["delivered", "refused", "silent"].every((outcome) => first(outcome).test(text)),
      )
      assert.deepStrictEqual([...types].sort(), [...page].sort())
      const dashboard = namesIn("deploy/grafana/bailiwick.json", types)
      assert.deepStrictEqual([...dashboard].sort(), [...types.keys()].sort())
      const alerts = namesIn("deploy/prometheus/alerts.yml", types)
      assert.isAbove(alerts.size, 0)
      for (const name of alerts) assert.isTrue(types.has(name), name)
      const counted = (method: string, route: string, status: string) =>
        text.split("\n").filter((line) =>
          line.startsWith("bailiwick_http_request_seconds_count{") && line.includes(`method="${method}"`) &&
          line.includes(`route="${route}"`) && line.includes(`status="${status}"`)
        ).length
      assert.strictEqual(counted("GET", "/health", "2xx"), 1)
      assert.strictEqual(counted("GET", "unknown", "4xx"), 1)
      assert.strictEqual(text.split("\n").filter((line) => /_count\{.*route="\/v1\/webhooks\/\{/.test(line)).length, 1)
      assert.notInclude(text, "secret-")
      for (const [metric, queue] of [["queue_depth", "deliveries"], ["queue_oldest_due_seconds", "mails"]]) {
        assert.match(text, new RegExp(`^bailiwick_${metric}\\{queue="${queue}"\\} \\d`, "m"))
      }
      assert.match(text, /^bailiwick_queue_failing\{queue="deliveries"\} [1-9]/m)
    }).pipe(Effect.scoped),
  120_000,
)

it.live("a process shows the queues of its roles only", () =>
  Effect.gen(function* () {
    const port = yield* freePort()
    yield* fixture({ METRICS_PORT: `${port}`, ROLES: "api,relay" })
    const { text } = yield* scrape(port)
    const queues = new Set([...text.matchAll(/^bailiwick_queue_depth\{queue="(\w+)"\}/gm)].map(([, queue]) => queue))
    assert.deepStrictEqual(queues, new Set(["outbox_ordered", "outbox_unordered"]))
    assert.notInclude(text, "bailiwick_delivery_attempts_total")
  }).pipe(Effect.scoped), 120_000)
