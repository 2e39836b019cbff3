/** Traces by OTLP, and metrics for Prometheus to scrape. */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Layer } from "effect"
import { HttpRouter } from "effect/http"
import { Otlp, PrometheusMetrics } from "effect/observability"
import { createServer } from "node:http"

export const traces = (baseUrl: string) =>
  Otlp.layerJson({ baseUrl, resource: { serviceName: "bailiwick" } }).pipe(
    Layer.provide(NodeHttpClient.layerNodeHttp),
  )

export const metrics = (host: string, port: number) =>
  HttpRouter.serve(PrometheusMetrics.layerHttp({ path: "/metrics" }), {
    disableLogger: true,
    disableListenLog: true,
  }).pipe(Layer.provide(NodeHttpServer.layer(() => createServer(), { host, port })))
