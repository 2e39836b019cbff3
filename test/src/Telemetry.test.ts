import { assert, it } from "@effect/vitest"
import { Cause, ConfigProvider, Effect, Logger, Metric } from "effect"
import { Buffer } from "node:buffer"
import { createServer, type IncomingHttpHeaders } from "node:http"
import type { AddressInfo } from "node:net"
import { vi } from "vitest"
import { load } from "../../src/AppConfig.ts"
import { telemetry } from "../../src/Telemetry.ts"

/** A receiver of OTLP over HTTP, and what it was sent. */
const collector = Effect.gen(function* () {
  const requests: Array<{ readonly url: string; readonly headers: IncomingHttpHeaders; readonly text: string }> = []
  const server = createServer((request, response) => {
    const parts: Array<Uint8Array> = []
    request.on("data", (part) => parts.push(part))
    request.on("end", () => {
      requests.push({ url: request.url!, headers: request.headers, text: Buffer.concat(parts).toString() })
      response.writeHead(200, { "content-type": "application/json" }).end("{}")
    })
  })
  yield* Effect.acquireRelease(
    Effect.promise(() => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))),
    () => Effect.promise(() => new Promise<void>((resolve) => server.close(() => resolve()))),
  )
  return { requests, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
})

/** Makes a span, a log and a metric under these settings; the exporters send the rest when the program stops. */
const exporting = (settings: Record<string, string>) =>
  Effect.gen(function* () {
    const provider = ConfigProvider.fromUnknown({ LOG_FORMAT: "json", ...settings })
    const config = yield* Effect.provideService(load, ConfigProvider.ConfigProvider, provider)
    yield* Metric.update(Metric.counter("count_of_a_test"), 1)
    yield* Effect.logWarning("log of a test").pipe(
      Effect.withSpan("span of a test"),
      Effect.andThen(Effect.sleep(50)),
      Effect.provide(telemetry(config), { local: true }),
    )
  })

const loggers = (settings: Record<string, string>) =>
  Effect.gen(function* () {
    const provider = ConfigProvider.fromUnknown(settings)
    const config = yield* Effect.provideService(load, ConfigProvider.ConfigProvider, provider)
    return yield* Effect.provide(Logger.CurrentLoggers, telemetry(config), { local: true })
  })

it.live("logs have the configured format, exported or not", () =>
  Effect.gen(function* () {
    const { url: collectorUrl } = yield* collector
    assert.deepStrictEqual([...yield* loggers({ LOG_FORMAT: "json" })], [Logger.consoleJson])
    const both = yield* loggers({ LOG_FORMAT: "json", OTEL_EXPORTER_OTLP_ENDPOINT: collectorUrl })
    assert.strictEqual(both.size, 2)
    assert.isTrue(both.has(Logger.consoleJson))
    const disabled = { LOG_FORMAT: "json", OTEL_EXPORTER_OTLP_ENDPOINT: collectorUrl, OTEL_SDK_DISABLED: "true" }
    assert.deepStrictEqual([...yield* loggers(disabled)], [Logger.consoleJson])
  }).pipe(Effect.scoped))

it.live("each signal goes where its own variables say, else where the general ones do", () =>
  Effect.gen(function* () {
    const [one, other] = [yield* collector, yield* collector]
    yield* exporting({
      OTEL_EXPORTER_OTLP_ENDPOINT: `${one.url}/base/`,
      OTEL_EXPORTER_OTLP_HEADERS: "x-tenant=ours",
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${other.url}/spans`,
      OTEL_EXPORTER_OTLP_TRACES_HEADERS: "x-key=a%20key",
      OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: "http/protobuf",
      OTEL_LOGS_EXPORTER: "none",
    })
    const sent = ({ requests }: typeof one) =>
      requests.map(({ headers, url }) => [url, headers["content-type"], headers["x-tenant"], headers["x-key"]])
    assert.deepStrictEqual(sent(one), [["/base/v1/metrics", "application/x-protobuf", "ours", undefined]])
    assert.deepStrictEqual(sent(other), [["/spans", "application/json", undefined, "a key"]])
    assert.include(one.requests[0]!.text, "count_of_a_test")
    assert.include(other.requests[0]!.text, "span of a test")
    other.requests.length = 0
    yield* exporting({ OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: `${other.url}/logs` })
    assert.deepStrictEqual(other.requests.map(({ url }) => url), ["/logs"])
    assert.include(other.requests[0]!.text, "log of a test")
  }).pipe(Effect.scoped))

it.live("OTEL_TRACES_SAMPLER chooses the traces that are exported", () =>
  Effect.gen(function* () {
    const { requests, url } = yield* collector
    const of = (sampler: string, ratio = "1") =>
      exporting({
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: url,
        OTEL_TRACES_SAMPLER: sampler,
        OTEL_TRACES_SAMPLER_ARG: ratio,
      })
    for (const sampler of ["always_off", "parentbased_always_off"]) yield* of(sampler)
    for (const sampler of ["traceidratio", "parentbased_traceidratio"]) yield* of(sampler, "0")
    assert.lengthOf(requests, 0)
    yield* of("traceidratio", "1")
    assert.lengthOf(requests, 1)
  }).pipe(Effect.scoped))

it.live("foreign text in a log cannot move the cursor or forge a line", () =>
  Effect.gen(function* () {
    const shown: Array<string> = []
    const log = vi.spyOn(globalThis.console, "log").mockImplementation((...parts) => void shown.push(parts.join(" ")))
    const provider = ConfigProvider.fromUnknown({ LOG_FORMAT: "pretty" })
    const config = yield* Effect.provideService(load, ConfigProvider.ConfigProvider, provider)
    yield* Effect.logWarning("red\u001b[31m\u202e\nnext", Cause.fail(new Error("boom\u001b[2J"))).pipe(
      Effect.provide(telemetry(config), { local: true }),
      Effect.ensuring(Effect.sync(() => log.mockRestore())),
    )
    const [first, cause] = shown
    assert.match(first!, /WARN .*red\\u001b\[31m\\u202e\\nnext/)
    assert.match(cause!, /^Error: boom\\u001b\[2J\n/)
  }))
