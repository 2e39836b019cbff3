/** Variables of OpenTelemetry that each signal has, and those that choose traces. One for a signal outweighs the general one. */
import { headers, literal, optional, share, url } from "./Parsers.ts"

type Signal = "TRACES" | "METRICS" | "LOGS"

/** Used as it is: nothing is put below it. */
const endpoint = (signal: Signal) => ({
  name: `OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`,
  parse: optional(url("http", "https")),
  fallback: null,
  example: `http://127.0.0.1:4318/v1/${signal.toLowerCase()}`,
})

const headersOf = (signal: Signal) => ({
  name: `OTEL_EXPORTER_OTLP_${signal}_HEADERS`,
  parse: optional(headers),
  fallback: null,
  example: "authorization=Bearer%20token",
})

const protocol = (signal: Signal) => ({
  name: `OTEL_EXPORTER_OTLP_${signal}_PROTOCOL`,
  parse: optional(literal("http/json", "http/protobuf")),
  fallback: null,
  example: "http/protobuf",
})

const exporter = (signal: Signal) => ({
  name: `OTEL_${signal}_EXPORTER`,
  parse: literal("otlp", "none"),
  fallback: "otlp" as const,
  example: "none",
})

export const samplers = [
  "always_on",
  "always_off",
  "traceidratio",
  "parentbased_always_on",
  "parentbased_always_off",
  "parentbased_traceidratio",
] as const

export const otlpVariables = {
  otlpTracesEndpoint: endpoint("TRACES"),
  otlpTracesHeaders: headersOf("TRACES"),
  otlpTracesProtocol: protocol("TRACES"),
  otlpTracesExporter: exporter("TRACES"),
  otlpMetricsEndpoint: endpoint("METRICS"),
  otlpMetricsHeaders: headersOf("METRICS"),
  otlpMetricsProtocol: protocol("METRICS"),
  otlpMetricsExporter: exporter("METRICS"),
  otlpLogsEndpoint: endpoint("LOGS"),
  otlpLogsHeaders: headersOf("LOGS"),
  otlpLogsProtocol: protocol("LOGS"),
  otlpLogsExporter: exporter("LOGS"),
  otlpSampler: {
    name: "OTEL_TRACES_SAMPLER",
    parse: literal(...samplers),
    fallback: "parentbased_always_on" as const,
    example: "parentbased_traceidratio",
  },
  otlpSamplerArg: { name: "OTEL_TRACES_SAMPLER_ARG", parse: share, fallback: 1, example: "0.1" },
}
