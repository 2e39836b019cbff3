/**
 * Real programs as children of a test: started with an environment of their own, awaited by their output, killed by any
 * signal. None outlives its test: the scope ends it, and the run's teardown ends children of a killed worker, which it
 * finds by the file `processes/<pid>` in the run's folder.
 */
import { Effect, Schema } from "effect"
import { spawn } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import process from "node:process"
import { fileURLToPath } from "node:url"
import { inject } from "vitest"
import * as EmbeddedNats from "../../src/embedded/EmbeddedNats.ts"
import * as EmbeddedPostgres from "../../src/embedded/EmbeddedPostgres.ts"
import { startOf } from "../../src/embedded/ProcessTable.ts"
import { bundled } from "./ProgramBundle.ts"

export class ProcessError extends Schema.TaggedError<ProcessError>()("ProcessError", { message: Schema.String }) {}

export interface Program {
  readonly pid: number
  /** Its output so far, of both streams. */
  readonly output: () => string
  /** The first match in its output, now or later; fails when it ends, or four minutes pass, without one. */
  readonly line: (pattern: RegExp) => Effect.Effect<RegExpExecArray, ProcessError>
  readonly kill: (signal: NodeJS.Signals) => Effect.Effect<void>
  /** Its exit code, or null where a signal ended it. */
  readonly exited: Effect.Effect<number | null>
}

export interface ProgramOptions {
  /** The module to run, from the repository's root; `src/main.ts` by default. */
  readonly module?: string
  /** Whether the program's own modules run as they stand, as in a checkout and in the image, and not from a bundle. */
  readonly sources?: boolean
  readonly args?: ReadonlyArray<string>
  /** The whole environment but PATH, HOME and the caches. */
  readonly env: Record<string, string>
  readonly cwd?: string
  /** The runtime of the module, where it is not this process's own. */
  readonly command?: ReadonlyArray<string>
}

/**
 * The command for a TypeScript module: Deno on the installed packages, Node by type stripping. PROGRAM_NODE names
 * another Node for the programs of a run whose tests run here (`task test:node`).
 */
export const runtime = (): ReadonlyArray<string> => {
  const node = process.env["PROGRAM_NODE"]
  if (node !== undefined && node !== "") return [node]
  return [process.execPath, ...("Deno" in globalThis ? ["run", "-A", "--node-modules-dir=manual", "--no-lock"] : [])]
}

export const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..")

const inherited = () =>
  Object.fromEntries(
    ["PATH", "HOME", "DENO_DIR", "XDG_CACHE_HOME"].flatMap((name) => {
      const value = process.env[name]
      return value === undefined ? [] : [[name, value]]
    }),
  )

const empty = (prefix: () => string) =>
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(prefix())),
    (home) =>
      Effect.all([EmbeddedPostgres.clearHome(home), EmbeddedNats.clearHome(home)]).pipe(
        Effect.andThen(Effect.sync(() => rmSync(home, { recursive: true, force: true }))),
      ),
  )

/** An empty home for a program; when the scope closes, servers left in it are stopped and the home is removed. */
export const home = empty(() => {
  const homes = join(inject("runFolder"), "homes")
  mkdirSync(homes, { recursive: true, mode: 0o755 })
  return join(homes, "h")
})

/** A home outside of /dev/shm: Deno lets a program of few permissions read no file under /dev. */
export const homeOnDisk = empty(() => join(tmpdir(), "bailiwick-home-"))

const launch = Effect.fnUntraced(function* (options: ProgramOptions) {
  const [file, ...args] = options.command ?? runtime()
  const asked = options.module ?? "src/main.ts"
  // Another folder is that of another version.
  const module = options.sources === true || options.cwd !== undefined ? asked : yield* bundled(asked)
  const child = spawn(file!, [...args, module, ...options.args ?? []], {
    cwd: options.cwd ?? root,
    env: { ...inherited(), ...options.env },
    stdio: ["ignore", "pipe", "pipe"],
  })
  let text = ""
  let ended = false
  const listeners = new Set<() => void>()
  const heard = (chunk?: unknown) => {
    text += chunk ?? ""
    for (const listener of listeners) listener()
  }
  child.stdout.on("data", heard)
  child.stderr.on("data", heard)
  const closed = new Promise<number | null>((resolve, reject) => {
    const over = (code: number | null) => {
      ended = true
      heard()
      resolve(code)
    }
    child.once("error", reject)
    child.once("close", over)
    // A program started at the same moment may have inherited the pipes, which then stay open beyond this one's end.
    child.once("exit", (code) => void setTimeout(over, 2_000, code))
  })
  const line = (pattern: RegExp) =>
    Effect.callback<RegExpExecArray, ProcessError>((resume) => {
      const look = () => {
        const match = pattern.exec(text)
        if (match !== null) resume(Effect.succeed(match))
        else if (ended) resume(Effect.fail(new ProcessError({ message: `ended without ${pattern}:\n${text}` })))
      }
      listeners.add(look)
      look()
      return Effect.sync(() => listeners.delete(look))
    }).pipe(
      Effect.timeoutOrElse({
        duration: "4 minutes",
        orElse: () => Effect.fail(new ProcessError({ message: `no ${pattern} within four minutes:\n${text}` })),
      }),
    )
  const pid = child.pid ?? 0
  const processes = join(inject("runFolder"), "processes")
  mkdirSync(processes, { recursive: true })
  const record = join(processes, String(pid))
  const started = yield* startOf(pid)
  if (pid !== 0) writeFileSync(record, started ?? "")
  return {
    pid,
    output: () => text,
    line,
    kill: (signal) =>
      Effect.sync(() => {
        // On Deno a child that ends by itself after `kill` was called has no exit code.
        if (child.exitCode === null && child.signalCode === null) process.kill(pid, signal)
      }),
    exited: Effect.promise(() => closed).pipe(Effect.tap(() => Effect.sync(() => rmSync(record, { force: true })))),
  } satisfies Program
})

/** Starts a program. When the scope closes it gets SIGTERM, and SIGKILL after 12 s. */
export const start = (options: ProgramOptions) =>
  Effect.acquireRelease(launch(options), (program) =>
    program.kill("SIGTERM").pipe(
      Effect.andThen(program.exited),
      Effect.timeoutOrElse({
        duration: "12 seconds",
        orElse: () => Effect.andThen(program.kill("SIGKILL"), program.exited),
      }),
    ))
