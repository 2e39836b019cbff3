/**
 * Which traces are exported: the samplers of OpenTelemetry. Spans below one of this program follow it, since Effect
 * gives a span its parent's decision; so a sampler decides for the first span of a trace here.
 */
import { Option, Tracer } from "effect"
import type { samplers } from "./AppConfig/OtlpVariables.ts"

export type SamplerName = (typeof samplers)[number]

/** Digits of a trace's id that are random by W3C Trace Context, level 2: 56 bits. */
const randomDigits = 14

/** Traces whose random part is among the highest are kept, so that every program with this ratio keeps the same ones. */
const isKept = (ratio: number) => (traceId: string) => parseInt(traceId.slice(-randomDigits), 16) / 2 ** 56 >= 1 - ratio

const rootOf = (name: SamplerName, ratio: number): (traceId: string) => boolean => {
  if (name.endsWith("always_off")) return () => false
  return name.endsWith("traceidratio") ? isKept(ratio) : () => true
}

/** A tracer whose spans are sampled by this sampler. `ratio`: of the two samplers by ratio. */
export const sampled = (tracer: Tracer.Tracer, name: SamplerName, ratio: number): Tracer.Tracer => {
  const decides = rootOf(name, ratio)
  const byParent = name.startsWith("parentbased_")
  return Tracer.make({
    ...(tracer.context === undefined ? {} : { context: tracer.context }),
    span: (options) => {
      const parent = Option.getOrNull(options.parent)
      if (parent !== null && (parent._tag === "Span" || byParent)) return tracer.span(options)
      if (parent !== null) return tracer.span({ ...options, sampled: decides(parent.traceId) })
      const span = tracer.span(options)
      return !options.sampled || decides(span.traceId) ? span : tracer.span({ ...options, sampled: false })
    },
  })
}
