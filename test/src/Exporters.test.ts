/** The port for metrics outlives unused connections. */
import { assert, it } from "@effect/vitest"
import { Effect, Layer, Metric, Redacted, Schedule } from "effect"
import { createServer, type IncomingHttpHeaders } from "node:http"
import { type AddressInfo, connect, type Socket } from "node:net"
import { freePort } from "../../src/embedded/FreePorts.ts"
import { gaugedAtScrape } from "../../services/platform/observability/ScrapedGauges.ts"
import { metrics, otlp } from "../../src/Exporters.ts"

it.live("a scrape is answered beside more half-open connections than the port takes", () =>
  Effect.gen(function* () {
    const port = yield* freePort()
    yield* Metric.update(Metric.counter("scrapes_of_a_test"), 1)
    yield* Layer.build(metrics("127.0.0.1", port))
    const sockets: Array<Socket> = []
    yield* Effect.addFinalizer(() => Effect.sync(() => sockets.forEach((socket) => socket.destroy())))
    let closed = 0
    for (let n = 0; n < 100; n++) {
      sockets.push(connect(port, "127.0.0.1").on("error", () => {}).once("close", () => closed++).resume())
      sockets.at(-1)!.write("GET / HTTP/1.1\r\nX: ")
    }
    yield* Effect.repeat(Effect.sync(() => closed), { schedule: Schedule.spaced("10 millis"), until: (n) => n >= 68 })
    const scrape = yield* Effect.promise(() => fetch(`http://127.0.0.1:${port}/metrics`))
    assert.strictEqual(scrape.status, 200)
    assert.match(yield* Effect.promise(() => scrape.text()), /^scrapes_of_a_test 1$/m)
    assert.isAtLeast(closed, 69)
  }).pipe(Effect.scoped), 60_000)

it.live(
  "a scrape keeps the last value of a reading that fails or does not end, and shows how old it is",
  () =>
    Effect.gen(function* () {
      const port = yield* freePort()
      const gauge = (name: string) => Metric.gauge(name)
      let value = 4
      yield* gaugedAtScrape("read", Effect.succeed([[gauge("read_of_a_test"), 2]]))
      yield* gaugedAtScrape("failed", Effect.fail("away").pipe(Effect.as([[gauge("failed_of_a_test"), 3]])))
      yield* gaugedAtScrape(
        "stuck",
        Effect.suspend(() => value === 4 ? Effect.succeed([[gauge("stuck_of_a_test"), value]]) : Effect.never),
      )
      yield* Layer.build(metrics("127.0.0.1", port))
      const scrape = Effect.promise(() => fetch(`http://127.0.0.1:${port}/metrics`).then((answer) => answer.text()))
      const age = (text: string, reading: string) =>
        Number(new RegExp(`^bailiwick_reading_age_seconds\\{reading="${reading}"\\} (\\S+)$`, "m").exec(text)?.[1])
      const first = yield* scrape
      assert.match(first, /^read_of_a_test 2$/m)
      assert.match(first, /^stuck_of_a_test 4$/m)
      assert.notInclude(first, "failed_of_a_test")
      assert.isBelow(age(first, "stuck"), 0.9)
      value = 5
      const second = yield* scrape
      assert.match(second, /^read_of_a_test 2$/m)
      assert.match(second, /^stuck_of_a_test 4$/m)
      assert.isBelow(age(second, "read"), 0.9)
      assert.isAtLeast(age(second, "stuck"), 0.9)
      assert.isAbove(age(second, "failed"), age(first, "failed"))
    }).pipe(Effect.scoped),
  60_000,
)

it.live(
  "traces, metrics and read gauges are exported with the configured headers and name",
  () =>
    Effect.gen(function* () {
      const exports: Array<{ url: string; headers: IncomingHttpHeaders; text: string }> = []
      const server = createServer((request, response) => {
        const parts: Array<Uint8Array> = []
        request.on("data", (part) => parts.push(part))
        request.on("end", () => {
          exports.push({ url: request.url!, headers: request.headers, text: Buffer.concat(parts).toString() })
          response.writeHead(200, { "content-type": "application/json" }).end("{}")
        })
      })
      yield* Effect.acquireRelease(
        Effect.promise(() => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))),
        () => Effect.promise(() => new Promise<void>((resolve) => server.close(() => resolve()))),
      )
      const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
      yield* gaugedAtScrape("exported", Effect.succeed([[Metric.gauge("exported_of_a_test"), 7]]))
      const headers = Redacted.make({ "x-tenant": "ours" })
      for (const protocol of ["http/json", "http/protobuf"] as const) {
        exports.length = 0
        const to = (signal: string) => ({ url: `${baseUrl}/v1/${signal}`, headers, protocol })
        yield* Effect.void.pipe(
          Effect.withSpan("span of a test"),
          Effect.andThen(Effect.sleep(50)),
          Effect.provide(otlp({
            traces: to("traces"),
            metrics: to("metrics"),
            logs: null,
            sampler: "parentbased_always_on",
            samplerRatio: 1,
            serviceName: "named",
            metricMillis: 60_000,
          })),
        )
        const type = protocol === "http/json" ? "application/json" : "application/x-protobuf"
        const [traces, sent] = ["/v1/traces", "/v1/metrics"].map((path) => exports.find(({ url }) => url === path)!)
        for (const one of [traces!, sent!]) {
          assert.deepInclude(one.headers, { "x-tenant": "ours", "content-type": type })
          assert.include(one.text, "named")
        }
        assert.include(traces!.text, "span of a test")
        assert.include(sent!.text, "exported_of_a_test")
      }
    }).pipe(Effect.scoped),
  60_000,
)
