/** Counts the statements of an effect: each is a round trip to the database, which is most of its cost. */
import { Effect, Tracer } from "effect"

/** The number of statements beside the result of `effect`; BEGIN and COMMIT do not count. */
export const counting = Effect.fnUntraced(function* <A, E, R>(effect: Effect.Effect<A, E, R>) {
  let statements = 0
  const tracer = Tracer.make({
    span: (options) => {
      if (options.kind === "client") statements++
      return new Tracer.NativeSpan(options)
    },
  })
  const result = yield* Effect.withTracer(effect, tracer)
  return [statements, result] as const
})
