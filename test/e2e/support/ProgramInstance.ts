/** The program under test: started by its command, configured by its environment alone, killed and started again. */
import { Effect, Exit, Scope } from "effect"
import { type Program, type ProgramOptions, start as startProgram } from "../../support/Processes.ts"

export interface ProgramInstance {
  /** Its current address. */
  readonly origin: () => string
  readonly pid: () => number
  readonly output: () => string
  /** The current process. */
  readonly program: () => Program
  /** Starts it and waits for the line that says it is ready; changes of the environment stay. */
  readonly start: (changes?: Readonly<Record<string, string>>) => Effect.Effect<void>
  /** Ends it and waits until it is gone; returns its exit code, null after a signal. */
  readonly end: (signal: NodeJS.Signals) => Effect.Effect<number | null>
}

/** Not started yet; ended when the scope closes. `how`: the module instead of `src/main.ts`, and its command. */
export const instance = Effect.fnUntraced(function* (
  environment: Readonly<Record<string, string>>,
  how: Pick<ProgramOptions, "module" | "command" | "sources"> = {},
) {
  let running: { readonly scope: Scope.Closeable; readonly program: Program; readonly origin: string } | null = null
  let env = environment
  const now = () => {
    if (running === null) throw new Error("the program does not run")
    return running
  }
  const start: ProgramInstance["start"] = Effect.fnUntraced(function* (changes = {}) {
    env = { ...env, ...changes }
    const scope = yield* Scope.make()
    const program = yield* startProgram({ ...how, env }).pipe(Scope.provide(scope))
    const [, origin] = yield* Effect.onError(
      program.line(/bailiwick ready on (http:\S+)/),
      () => Scope.close(scope, Exit.void),
    )
    running = { scope, program, origin: origin! }
  }, Effect.orDie)
  const end: ProgramInstance["end"] = (signal) =>
    Effect.gen(function* () {
      const { program, scope } = now()
      running = null
      yield* program.kill(signal)
      const code = yield* program.exited
      yield* Scope.close(scope, Exit.void)
      return code
    })
  yield* Effect.addFinalizer(() => running === null ? Effect.void : Scope.close(running.scope, Exit.void))
  return {
    origin: () => now().origin,
    pid: () => now().program.pid,
    output: () => now().program.output(),
    program: () => now().program,
    start,
    end,
  } satisfies ProgramInstance
})

/** Runs `deno task cli` with these arguments to its end. */
export const cli = Effect.fnUntraced(function* (env: Readonly<Record<string, string>>, ...args: ReadonlyArray<string>) {
  const program = yield* startProgram({ module: "src/cli/main.ts", args, env })
  const code = yield* program.exited
  return { code, output: program.output() }
}, Effect.scoped)
