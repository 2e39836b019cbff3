/** Logs, traces and metrics, as far as they are configured. Off, they cost nothing. */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Console, Layer, Logger, type LogLevel, References } from "effect"
import { HttpRouter } from "effect/http"
import { Otlp, PrometheusMetrics } from "effect/observability"
import { createServer } from "node:http"
import type { AppConfig } from "./AppConfig.ts"
import { unheard } from "./Unheard.ts"

const levels: Record<AppConfig["logLevel"], LogLevel.LogLevel> = {
  trace: "Trace",
  debug: "Debug",
  info: "Info",
  warn: "Warn",
  error: "Error",
}

const logs = ({ logFormat, logLevel }: AppConfig) => {
  const pretty = logFormat === null ? process.stdout.isTTY === true : logFormat === "pretty"
  return Layer.mergeAll(
    Logger.layer([pretty ? Logger.consolePretty() : Logger.consoleJson]),
    Layer.succeed(Console.Console, unheard),
    Layer.succeed(References.MinimumLogLevel, levels[logLevel]),
  )
}

const traces = ({ otlp }: AppConfig) =>
  otlp === null
    ? Layer.succeed(References.TracerEnabled, false)
    : Otlp.layerJson({ baseUrl: otlp, resource: { serviceName: "bailiwick" } }).pipe(
      Layer.provide(NodeHttpClient.layerNodeHttp),
    )

const metrics = ({ host, metricsPort }: AppConfig) =>
  metricsPort === null ? Layer.empty : HttpRouter.serve(PrometheusMetrics.layerHttp({ path: "/metrics" }), {
    disableLogger: true,
    disableListenLog: true,
  }).pipe(Layer.provide(NodeHttpServer.layer(() => createServer(), { host, port: metricsPort })))

/** Who exports logs besides adds a logger to those that stand: ours stand first. */
export const telemetry = (config: AppConfig) =>
  Layer.merge(traces(config), metrics(config).pipe(Layer.orDie)).pipe(Layer.provideMerge(logs(config)))
