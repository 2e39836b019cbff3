/** Waits for a state that is visible from outside, by polling it. */
import { Effect, Schedule, Schema } from "effect"

export class TooLate extends Schema.TaggedError<TooLate>()("TooLate", { message: Schema.String }) {}

const shown = (value: unknown) => (JSON.stringify(value) ?? String(value)).slice(0, 2_000)

/** Polls until `good`, and returns that value; fails with the last value after `seconds`. */
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
