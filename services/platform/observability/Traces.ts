/**
 * Traces that go on where a request has ended (W3C Trace Context, level 1): what was decided is signed, published, taken
 * and acknowledged later and elsewhere, and all of it belongs to the trace of the request that decided. Its
 * `traceparent` is kept with what was decided. Where traces are off there is none, and all of this does nothing.
 *
 * Attributes are codes and typed ids; never an address, a token or a path.
 */
import { Clock, Effect, Exit, Option, Tracer } from "effect"
import { Headers, HttpTraceContext } from "effect/http"

type Attributes = Readonly<Record<string, string | number>>

/** The trace that the current fiber belongs to, as its header; null where nobody records it. */
export const traceparentNow: Effect.Effect<string | null> = Effect.map(
  Effect.option(Effect.currentParentSpan),
  Option.match({
    onNone: () => null,
    onSome: (span) => span.sampled ? `00-${span.traceId.padStart(32, "0")}-${span.spanId}-01` : null,
  }),
)

const parentOf = (traceparent: string): Tracer.AnySpan | null =>
  Option.getOrNull(HttpTraceContext.fromHeaders(Headers.fromRecordUnsafe({ traceparent })))

/** The effect as a span of an earlier trace; as it is where there is none. */
export const within =
  (name: string, traceparent: string | null, attributes: Attributes) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> => {
    const parent = traceparent === null ? null : parentOf(traceparent)
    return parent === null ? effect : Effect.withSpan(effect, name, { parent, attributes })
  }

/** Notes in an earlier trace that something came about just now, with a link to the request that brought it. */
export const note = Effect.fnUntraced(function* (name: string, traceparent: string | null, attributes: Attributes) {
  const parent = traceparent === null ? null : parentOf(traceparent)
  if (parent === null) return
  const current = yield* Effect.option(Effect.currentParentSpan)
  const links = Option.isSome(current) && current.value.sampled ? [{ span: current.value, attributes: {} }] : []
  const span = yield* Effect.makeSpan(name, { parent, attributes, links })
  span.end(yield* Clock.currentTimeNanos, Exit.void)
})
