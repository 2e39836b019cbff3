/** Traces, metrics and logs by OTLP, and metrics for Prometheus to scrape. */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Effect, Layer, Redacted, References, Schedule, Tracer } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { OtlpLogger, OtlpMetrics, OtlpSerialization, OtlpTracer, PrometheusMetrics } from "effect/observability"
import { createServer } from "node:http"
import { readGauges } from "../services/platform/observability/ScrapedGauges.ts"
import { headerTicks, ListenerConnections } from "./http/listener/ListenerConnections.ts"
import { counted } from "./http/listener/OnNode.ts"
import { sampled, type SamplerName } from "./TraceSampler.ts"

/** Where a signal is sent, and how. */
export interface Signal {
  readonly url: string
  readonly headers: Redacted.Redacted<Readonly<Record<string, string>>> | null
  readonly protocol: "http/json" | "http/protobuf"
}

export interface OtlpOptions {
  /** Null: this signal is not exported. */
  readonly traces: Signal | null
  readonly metrics: Signal | null
  readonly logs: Signal | null
  readonly sampler: SamplerName
  readonly samplerRatio: number
  readonly serviceName: string
  readonly metricMillis: number
}

const sent = <A, E, R>(signal: Signal, layer: Layer.Layer<A, E, R>) =>
  layer.pipe(
    Layer.provide(signal.protocol === "http/json" ? OtlpSerialization.layerJson : OtlpSerialization.layerProtobuf),
    Layer.provide(NodeHttpClient.layerNodeHttp),
  )

/** Exports traces, metrics and logs. Gauges that are read at a scrape are read at the interval of the exports. */
export const otlp = (options: OtlpOptions) => {
  const { logs, metricMillis, metrics, sampler, samplerRatio, serviceName, traces } = options
  const to = ({ headers, url }: Signal) => ({
    url,
    resource: { serviceName },
    headers: headers === null ? {} : Redacted.value(headers),
  })
  const chosen = Layer.effect(
    Tracer.Tracer,
    Effect.map(Effect.service(Tracer.Tracer), (tracer) => sampled(tracer, sampler, samplerRatio)),
  )
  const gauges = readGauges.pipe(Effect.repeat(Schedule.spaced(metricMillis)), Effect.forkScoped)
  return Layer.mergeAll(
    traces === null
      ? Layer.succeed(References.TracerEnabled, false)
      : sent(traces, Layer.provide(chosen, OtlpTracer.layer(to(traces)))),
    metrics === null ? Layer.empty : Layer.merge(
      sent(metrics, OtlpMetrics.layer({ ...to(metrics), exportInterval: metricMillis })),
      Layer.effectDiscard(gauges),
    ),
    logs === null ? Layer.empty : sent(logs, OtlpLogger.layer(to(logs))),
  )
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
