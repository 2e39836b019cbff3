/** How many statements something sends: each is a way to the database and back, which is most of what it costs. */
import { Effect, Tracer } from "effect"

/** The number of statements beside what `effect` gives; BEGIN and COMMIT do not count. */
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
