import { assert, it } from "@effect/vitest"
import { Cause, ConfigProvider, Effect, Logger } from "effect"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { vi } from "vitest"
import { load } from "../../src/AppConfig.ts"
import { telemetry } from "../../src/Telemetry.ts"

const loggers = (settings: Record<string, string>) =>
  Effect.gen(function* () {
    const provider = ConfigProvider.fromUnknown(settings)
    const config = yield* Effect.provideService(load, ConfigProvider.ConfigProvider, provider)
    return yield* Effect.provide(Logger.CurrentLoggers, telemetry(config), { local: true })
  })

it.live("logs have the configured format, exported or not", () =>
  Effect.gen(function* () {
    const server = createServer((_, response) => response.end("{}"))
    yield* Effect.acquireRelease(
      Effect.promise(() => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))),
      () => Effect.promise(() => new Promise<void>((resolve) => server.close(() => resolve()))),
    )
    const collector = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    assert.deepStrictEqual([...yield* loggers({ LOG_FORMAT: "json" })], [Logger.consoleJson])
    const both = yield* loggers({ LOG_FORMAT: "json", OTEL_EXPORTER_OTLP_ENDPOINT: collector })
    assert.strictEqual(both.size, 2)
    assert.isTrue(both.has(Logger.consoleJson))
    const disabled = { LOG_FORMAT: "json", OTEL_EXPORTER_OTLP_ENDPOINT: collector, OTEL_SDK_DISABLED: "true" }
    assert.deepStrictEqual([...yield* loggers(disabled)], [Logger.consoleJson])
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
