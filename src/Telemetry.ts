/** Logs, traces and metrics. Those that are not configured cost nothing. */
import { Cause, Console, Effect, Layer, Logger, type LogLevel, References } from "effect"
import type { AppConfig } from "./AppConfig.ts"
import { printable } from "./cli/EscapeControls.ts"
import { measuredRequests } from "./http/edge/RequestMetrics.ts"
import { measuredEventLoop } from "./process/EventLoopLag.ts"
import { unheard } from "./process/StdioErrors.ts"

const levels: Record<AppConfig["logLevel"], LogLevel.LogLevel> = {
  trace: "Trace",
  debug: "Debug",
  info: "Info",
  warn: "Warn",
  error: "Error",
}

/**
 * The pretty logger for a terminal. Text of others (a server's error, a name) may hold control characters, which
 * `Logger.consolePretty` passes on; they are escaped first, since the logger adds its own for colours.
 */
const prettily = (): Logger.Logger<unknown, void> => {
  const pretty = Logger.consolePretty()
  const escaped = (part: unknown) => typeof part === "string" ? printable(part) : part
  return Logger.make(({ cause, fiber, message, ...rest }) => {
    const [first, ...more] = Array.isArray(message) ? message : [message]
    const causes = cause.reasons.length === 0 ? [] : [Cause.pretty(cause).split("\n").map(printable).join("\n")]
    pretty.log({ ...rest, fiber, cause: Cause.empty, message: [escaped(first), ...causes, ...more.map(escaped)] })
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

/** Loaded only where an exporter is configured: other starts do not wait for it. */
const exporters = Effect.promise(() => import("./Exporters.ts"))

const withoutSlash = (url: string) => url.endsWith("/") ? url.slice(0, -1) : url

/** Where a signal is exported, or null. Its own variables outweigh the general ones. */
const signalOf = (config: AppConfig, name: "Traces" | "Metrics" | "Logs") => {
  const own = config[`otlp${name}Endpoint`]
  const below = config.otlp === null ? null : `${withoutSlash(config.otlp)}/v1/${name.toLowerCase()}`
  const url = own ?? below
  return url === null || config.otelDisabled || config[`otlp${name}Exporter`] === "none" ? null : {
    url,
    headers: config[`otlp${name}Headers`] ?? config.otlpHeaders,
    protocol: config[`otlp${name}Protocol`] ?? config.otlpProtocol,
  }
}

const exported = (config: AppConfig) => {
  const [traces, metrics, logs] = [signalOf(config, "Traces"), signalOf(config, "Metrics"), signalOf(config, "Logs")]
  return traces === null && metrics === null && logs === null
    ? Layer.succeed(References.TracerEnabled, false)
    : Layer.unwrap(Effect.map(exporters, ({ otlp }) =>
      otlp({
        traces,
        metrics,
        logs,
        sampler: config.otlpSampler,
        samplerRatio: config.otlpSamplerArg,
        serviceName: config.otlpServiceName,
        metricMillis: config.otlpMetricMillis,
      })))
}

const scraped = ({ host, metricsPort }: AppConfig) =>
  metricsPort === null ? Layer.empty : Layer.unwrap(Effect.map(exporters, ({ metrics }) => metrics(host, metricsPort)))

const measured = (config: AppConfig) =>
  config.metricsPort === null && signalOf(config, "Metrics") === null
    ? Layer.empty
    : Layer.merge(measuredRequests, measuredEventLoop)

/** Provides the program's loggers first, so that an exporter of logs is added to them. */
export const telemetry = (config: AppConfig) =>
  Layer.mergeAll(exported(config), measured(config), scraped(config).pipe(Layer.orDie)).pipe(
    Layer.provideMerge(logs(config)),
  )
