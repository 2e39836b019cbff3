/** Waiting for what can be seen from outside: looked at again and again, never slept for. */
import { Effect, Schedule, Schema } from "effect"

export class TooLate extends Schema.TaggedError<TooLate>()("TooLate", { message: Schema.String }) {}

const shown = (value: unknown) => (JSON.stringify(value) ?? String(value)).slice(0, 2_000)

/** Looks until `good`, and gives what it saw then; fails with the last sight after `seconds`. */
export const until = <A, E, R>(
  what: string,
  look: Effect.Effect<A, E, R>,
  good: (seen: A) => boolean,
  seconds = 90,
): Effect.Effect<A, E | TooLate, R> =>
  Effect.suspend(() => {
    let last: unknown = "nothing"
    const deadline = performance.now() + seconds * 1000
    return look.pipe(
      Effect.flatMap((seen) => {
        last = seen
        return good(seen) ? Effect.succeed(seen) : Effect.fail(new TooLate({ message: "" }))
      }),
      Effect.retry({
        schedule: Schedule.spaced("50 millis"),
        while: (error) => error instanceof TooLate && performance.now() < deadline,
      }),
      Effect.mapError((error) =>
        error instanceof TooLate
          ? new TooLate({ message: `${what}: not within ${seconds} s, last ${shown(last)}` })
          : error
      ),
    )
  })
