/** Values and functions that many test files need. */
import { Effect } from "effect"
import { TestClock } from "effect/testing"

/** Milliseconds. */
export const hour = 3_600_000
/** Milliseconds. */
export const day = 24 * hour

/** A reason that the schemas accept, for requests whose reason does not matter. */
export const reason = "as we agreed on Monday"

/** A moment, in milliseconds since 1970. */
export const noon = Date.parse("2026-03-10T12:00:00.000Z")

/** The moment at which `timed` begins. */
export const start = Date.parse("2026-03-01T12:00:00Z")

/** Runs with a test clock that begins at `start`; loops of services that were built before keep the real clock. */
export const timed = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.andThen(TestClock.setTime(start), effect).pipe(Effect.provide(TestClock.layer()))

/** The name of the error that an effect fails with, or `done`. */
export const tagOf = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.match(effect, {
    onFailure: (error) => error instanceof Error ? error.name : String(error),
    onSuccess: () => "done",
  })

/** Status and code of an answer: `[404, "not_found"]`; null where the body has no code. */
export const codeOf = (
  { body, status }: { readonly body: unknown; readonly status: number },
): readonly [number, string | null] => [status, (body as { readonly code?: string } | null)?.code ?? null]
