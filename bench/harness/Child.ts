/**
 * A measured program in a process of its own. It reports by JSON lines on standard output, `{"event": …}`, and takes
 * orders by lines on standard input; any other output is kept for the error message. It gets an explicit environment,
 * and SIGTERM, then SIGKILL, when the scope closes.
 */
import { Effect, Schema } from "effect"
import { spawn } from "node:child_process"
import { dirname, join } from "node:path"
import process from "node:process"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"

export class BenchError extends Schema.TaggedError<BenchError>()("BenchError", { message: Schema.String }) {}

export interface Child {
  readonly pid: number
  /** The time of its start, in milliseconds of this process's monotonic clock. */
  readonly startedAt: number
  readonly tell: (line: string) => Effect.Effect<void>
  /** The next event of this name, which may have come already; each is given out once. */
  readonly event: <A>(name: string, seconds?: number) => Effect.Effect<A, BenchError>
  /** Fails when it ends. */
  readonly ended: Effect.Effect<never, BenchError>
  /** Its first line that matches, now or later. */
  readonly line: (pattern: RegExp, seconds?: number) => Effect.Effect<string, BenchError>
}

export interface ChildOptions {
  /** From the repository's root. */
  readonly module: string
  readonly args?: ReadonlyArray<string>
  readonly env?: Readonly<Record<string, string>>
  /** The runtime of the module, where it is not this one. */
  readonly command?: ReadonlyArray<string>
}

export const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..")

/** Deno's arguments for a module, without access to a registry; the program's as in `deno task start`. */
export const denoRun = (module: string): ReadonlyArray<string> => [
  ...["run", "-A", "--node-modules-dir=manual", "--no-lock"],
  ...(module === "src/main.ts" ? ["--v8-flags=--max-semi-space-size=16"] : []),
]

const runtime = (module: string): ReadonlyArray<string> => [
  process.execPath,
  ...("Deno" in globalThis ? denoRun(module) : []),
]

const inherited = () =>
  Object.fromEntries(
    ["PATH", "HOME", "DENO_DIR", "XDG_CACHE_HOME"].flatMap((name) => {
      const value = process.env[name]
      return value === undefined ? [] : [[name, value]]
    }),
  )

const eventOf = (line: string): { readonly event: string } | null => {
  if (!line.startsWith(`{"event":`)) return null
  return JSON.parse(line)
}

const launch = ({ args: given = [], command, env, module }: ChildOptions) =>
  Effect.sync(() => {
    const startedAt = performance.now()
    const [file, ...args] = command ?? runtime(module)
    const child = spawn(file!, [...args, module, ...given], {
      cwd: root,
      env: { ...inherited(), ...env },
      stdio: ["pipe", "pipe", "pipe"],
    })
    const lines: Array<string> = []
    const events: Array<{ readonly event: string }> = []
    const listeners = new Set<() => void>()
    let ended = false
    const wake = () => listeners.forEach((listener) => listener())
    const hear = (line: string) => {
      const event = eventOf(line)
      if (event !== null) events.push(event)
      else if (lines.push(line) > 200) lines.shift()
      wake()
    }
    createInterface({ input: child.stdout }).on("line", hear)
    createInterface({ input: child.stderr }).on("line", hear)
    // A program that ended takes no more orders; its end is reported by the caller that waits for it.
    child.stdin.on("error", () => {})
    const exited = new Promise<void>((resolve) =>
      // Not "close": a grandchild may hold its streams open.
      child.once("exit", () => {
        ended = true
        wake()
        resolve()
      })
    )
    const until = <A>(what: string, find: () => A | undefined, seconds: number) =>
      Effect.callback<A, BenchError>((resume) => {
        const look = () => {
          const found = find()
          if (found !== undefined) {
            listeners.delete(look)
            resume(Effect.succeed(found))
          } else if (ended) {
            resume(Effect.fail(new BenchError({ message: `${module} ended before ${what}:\n${lines.join("\n")}` })))
          }
        }
        listeners.add(look)
        look()
        return Effect.sync(() => listeners.delete(look))
      }).pipe(
        Effect.timeoutOrElse({
          duration: seconds * 1000,
          orElse: () =>
            Effect.fail(new BenchError({ message: `${module}: no ${what} in ${seconds} s:\n${lines.join("\n")}` })),
        }),
      )
    const handle: Child = {
      pid: child.pid ?? 0,
      startedAt,
      tell: (line) => Effect.sync(() => void child.stdin.write(`${line}\n`)),
      event: <A>(name: string, seconds = 120) =>
        until(name, () => {
          const at = events.findIndex(({ event }) => event === name)
          return at < 0 ? undefined : events.splice(at, 1)[0] as A
        }, seconds),
      ended: Effect.flatMap(
        Effect.promise(() => exited),
        () => Effect.fail(new BenchError({ message: `${module} ended:\n${lines.join("\n")}` })),
      ),
      line: (pattern, seconds = 60) => until(String(pattern), () => lines.find((line) => pattern.test(line)), seconds),
    }
    return { child, exited, handle }
  })

/** Starts a program; it is ended when the scope closes. */
export const start = (options: ChildOptions) =>
  Effect.acquireRelease(launch(options), ({ child, exited }) =>
    Effect.sync(() => void child.kill("SIGTERM")).pipe(
      Effect.andThen(Effect.promise(() => exited)),
      Effect.timeoutOrElse({
        duration: "12 seconds",
        orElse: () => Effect.sync(() => void child.kill("SIGKILL")).pipe(Effect.andThen(Effect.promise(() => exited))),
      }),
    )).pipe(Effect.map(({ handle }) => handle))
