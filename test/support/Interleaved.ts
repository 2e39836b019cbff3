/**
 * Runs two commands of two round trips each in every order that these four may take. Gives the outcome of each order,
 * and of the two orders in which one command ends before the other begins.
 */
import { Deferred, Effect, Fiber } from "effect"
import { BeforeWrite } from "../../services/platform/database/FencedWrite.ts"

type Step = "load 0" | "write 0" | "load 1" | "write 1"

/** Each command loads before it writes. */
const orders: ReadonlyArray<ReadonlyArray<Step>> = [
  ["load 0", "load 1", "write 0", "write 1"],
  ["load 0", "load 1", "write 1", "write 0"],
  ["load 1", "load 0", "write 0", "write 1"],
  ["load 1", "load 0", "write 1", "write 0"],
]
const serial: ReadonlyArray<ReadonlyArray<Step>> = [
  ["load 0", "write 0", "load 1", "write 1"],
  ["load 1", "write 1", "load 0", "write 0"],
]

/** A command that pauses before its first write. A command that ends without one ends both of its steps. */
const stepped = Effect.fnUntraced(function* <A, E, R>(command: Effect.Effect<A, E, R>) {
  const [loaded, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
  const stop = Effect.andThen(Deferred.succeed(loaded, undefined), Deferred.await(go))
  const fiber = { running: null as Fiber.Fiber<A, E> | null }
  const load = Effect.gen(function* () {
    fiber.running = yield* Effect.forkChild(Effect.provideService(command, BeforeWrite, stop))
    yield* Effect.raceFirst(Deferred.await(loaded), Fiber.await(fiber.running))
  })
  const write = Effect.andThen(Deferred.succeed(go, undefined), Effect.suspend(() => Fiber.await(fiber.running!)))
  return { load, write, outcome: Effect.suspend(() => Fiber.join(fiber.running!)) }
})

/**
 * `fixture` makes the two commands and the query of the state after them. Returns the outcomes of all interleavings, and
 * of both serial orders.
 */
export const interleaved = Effect.fnUntraced(function* <A, E, R, S, E2, R2, E3, R3>(
  fixture: Effect.Effect<
    {
      readonly commands: readonly [Effect.Effect<A, E, R>, Effect.Effect<A, E, R>]
      readonly state: Effect.Effect<S, E2, R2>
    },
    E3,
    R3
  >,
) {
  const play = Effect.fnUntraced(function* (order: ReadonlyArray<Step>) {
    const { commands, state } = yield* fixture
    const [first, second] = [yield* stepped(commands[0]), yield* stepped(commands[1])]
    for (const step of order) {
      const [what, which] = step.split(" ")
      yield* (which === "0" ? first : second)[what as "load" | "write"]
    }
    return { outcomes: [yield* first.outcome, yield* second.outcome] as const, state: yield* state }
  })
  return {
    interleavings: yield* Effect.forEach(orders, play),
    serial: yield* Effect.forEach(serial, play),
  }
})
