/**
 * Traces that go on after their request has ended (W3C Trace Context, level 1): an event is signed, published,
 * delivered and acknowledged later and by other processes, and these spans belong to the trace of the request that
 * decided. Its `traceparent` is stored with the event. Where traces are off there is none, and these functions do
 * nothing.
 *
 * Attributes are codes and typed ids; never an address, a token or a path.
 */
import { Clock, Effect, Exit, Option, Tracer } from "effect"
import { Headers, HttpTraceContext } from "effect/http"

type Attributes = Readonly<Record<string, string | number>>

/** The `traceparent` of the current fiber's trace; null where the trace is not recorded. */
export const traceparentNow: Effect.Effect<string | null> = Effect.map(
  Effect.option(Effect.currentParentSpan),
  Option.match({
    onNone: () => null,
    onSome: (span) => span.sampled ? `00-${span.traceId.padStart(32, "0")}-${span.spanId}-01` : null,
  }),
)

const parentOf = (traceparent: string): Tracer.AnySpan | null =>
  Option.getOrNull(HttpTraceContext.fromHeaders(Headers.fromRecordUnsafe({ traceparent })))

/** Runs an effect as a span of an earlier trace; without a span where there is no trace. */
export const within =
  (name: string, traceparent: string | null, attributes: Attributes) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> => {
    const parent = traceparent === null ? null : parentOf(traceparent)
    return parent === null ? effect : Effect.withSpan(effect, name, { parent, attributes })
  }

/** Adds a span without duration to an earlier trace, with a link to the request that is running now. */
export const note = Effect.fnUntraced(function* (name: string, traceparent: string | null, attributes: Attributes) {
  const parent = traceparent === null ? null : parentOf(traceparent)
  if (parent === null) return
  const current = yield* Effect.option(Effect.currentParentSpan)
  const links = Option.isSome(current) && current.value.sampled ? [{ span: current.value, attributes: {} }] : []
  const span = yield* Effect.makeSpan(name, { parent, attributes, links })
  span.end(yield* Clock.currentTimeNanos, Exit.void)
})
