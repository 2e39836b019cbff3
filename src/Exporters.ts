/** Traces, metrics and logs by OTLP, and metrics for Prometheus to scrape. */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Effect, Layer, Redacted, Schedule } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { Otlp, PrometheusMetrics } from "effect/observability"
import { createServer } from "node:http"
import { readGauges } from "../services/platform/observability/ScrapedGauges.ts"
import { headerTicks, ListenerConnections } from "./http/listener/ListenerConnections.ts"
import { counted } from "./http/listener/OnNode.ts"

export interface OtlpOptions {
  readonly baseUrl: string
  readonly headers: Redacted.Redacted<Readonly<Record<string, string>>> | null
  readonly protocol: "http/json" | "http/protobuf"
  readonly serviceName: string
  readonly metricMillis: number
}

/** Exports traces, metrics and logs. Gauges that are read at a scrape are read at the interval of the exports. */
export const otlp = ({ baseUrl, headers, metricMillis, protocol, serviceName }: OtlpOptions) => {
  const layer = protocol === "http/json" ? Otlp.layerJson : Otlp.layerProtobuf
  const exported = layer({
    baseUrl,
    resource: { serviceName },
    headers: headers === null ? {} : Redacted.value(headers),
    metricsExportInterval: metricMillis,
  }).pipe(Layer.provide(NodeHttpClient.layerNodeHttp))
  const gauges = readGauges.pipe(Effect.repeat(Schedule.spaced(metricMillis)), Effect.forkScoped)
  return Layer.merge(exported, Layer.effectDiscard(gauges))
}

/** More than the scrapers of an installation; without a bound, connections to this port could take all descriptors. */
const maxConnections = 32
const headerMillis = 10_000

const boundedServer = Effect.gen(function* () {
  const connections = new ListenerConnections(maxConnections)
  const http = createServer()
  counted(http, connections)
  yield* Effect.sync(() => connections.tick()).pipe(
    Effect.delay(headerMillis / headerTicks),
    Effect.forever,
    Effect.forkScoped,
  )
  return http
})

const scrape = Effect.gen(function* () {
  yield* readGauges
  const text = yield* PrometheusMetrics.format()
  return HttpServerResponse.text(text, { contentType: "text/plain; version=0.0.4; charset=utf-8" })
})

/** `GET /metrics` on a port of its own. At most 32 connections: a half-open or idle one gives way to a new one. */
export const metrics = (host: string, port: number) =>
  Layer.unwrap(Effect.map(boundedServer, (http) =>
    HttpRouter.serve(HttpRouter.add("GET", "/metrics", scrape), {
      disableLogger: true,
      disableListenLog: true,
    }).pipe(Layer.provide(NodeHttpServer.layer(() => http, { host, port })))))
