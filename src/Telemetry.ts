/** Logs, traces and metrics, as far as they are configured. Off, they cost nothing. */
import { Cause, Console, Effect, Layer, Logger, type LogLevel, References } from "effect"
import type { AppConfig } from "./AppConfig.ts"
import { printable } from "./cli/Printable.ts"
import { unheard } from "./Unheard.ts"

const levels: Record<AppConfig["logLevel"], LogLevel.LogLevel> = {
  trace: "Trace",
  debug: "Debug",
  info: "Info",
  warn: "Warn",
  error: "Error",
}

/**
 * For a terminal: what others wrote (a server's error, a name) is made harmless there. `Logger.consolePretty` would hand
 * it on as it is; colours are its own, so the text is mended before it gets it.
 */
const prettily = (): Logger.Logger<unknown, void> => {
  const pretty = Logger.consolePretty()
  const mended = (part: unknown) => typeof part === "string" ? printable(part) : part
  return Logger.make(({ cause, fiber, message, ...rest }) => {
    const [first, ...more] = Array.isArray(message) ? message : [message]
    const told = cause.reasons.length === 0 ? [] : [Cause.pretty(cause).split("\n").map(printable).join("\n")]
    pretty.log({ ...rest, fiber, cause: Cause.empty, message: [mended(first), ...told, ...more.map(mended)] })
  })
}

const logs = ({ logFormat, logLevel }: AppConfig) => {
  const pretty = logFormat === null ? process.stdout.isTTY === true : logFormat === "pretty"
  return Layer.mergeAll(
    Logger.layer([pretty ? prettily() : Logger.consoleJson]),
    Layer.succeed(Console.Console, unheard),
    Layer.succeed(References.MinimumLogLevel, levels[logLevel]),
  )
}

/** What a configuration without an exporter never needs is loaded with one: a start does not wait for it. */
const exporters = Effect.promise(() => import("./Telemetry/Exporters.ts"))

const traces = ({ otlp }: AppConfig) =>
  otlp === null
    ? Layer.succeed(References.TracerEnabled, false)
    : Layer.unwrap(Effect.map(exporters, ({ traces }) => traces(otlp)))

const metrics = ({ host, metricsPort }: AppConfig) =>
  metricsPort === null ? Layer.empty : Layer.unwrap(Effect.map(exporters, ({ metrics }) => metrics(host, metricsPort)))

/** Who exports logs besides adds a logger to those that stand: ours stand first. */
export const telemetry = (config: AppConfig) =>
  Layer.merge(traces(config), metrics(config).pipe(Layer.orDie)).pipe(Layer.provideMerge(logs(config)))
