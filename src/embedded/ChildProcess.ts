/**
 * Child processes that end with their scope: servers with a log file and an orderly stop, and tools that run to their
 * end.
 *
 * A server leads its own session, so that Ctrl-C at the terminal reaches this program alone and the servers stop last.
 * It logs to a file and not to a pipe, so that it can go on writing when this program is killed; the next start finds
 * it by its pid file and command line. Environments are explicit: no variable of ours leaks into a child.
 */
import { type Duration, Effect, Exit } from "effect"
import { spawn } from "node:child_process"
import { closeSync, existsSync, openSync, renameSync } from "node:fs"
import process from "node:process"
import { atExit } from "./AtExit.ts"
import { attempting, EmbeddedError } from "./EmbeddedError.ts"
import type { ServerUser } from "./ServerUser.ts"

export interface Command {
  readonly file: string
  readonly args: ReadonlyArray<string>
  readonly cwd: string
  readonly user?: ServerUser | undefined
  readonly env?: Record<string, string> | undefined
}

export interface Ended {
  readonly code: number | null
  readonly signal: string | null
}

export interface Child {
  readonly pid: number
  /** Completes when the process has ended; never fails. */
  readonly exited: Effect.Effect<Ended>
}

/** Signals from the gentlest on, each with the time to wait for its effect. */
export type Farewell = ReadonlyArray<readonly [signal: NodeJS.Signals, patience: Duration.Input]>

const basics = (): Record<string, string> => ({
  PATH: process.env["PATH"] ?? "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
  LC_ALL: "C",
  TZ: "UTC",
  // Windows starts no program without it.
  ...(process.env["SystemRoot"] === undefined ? {} : { SystemRoot: process.env["SystemRoot"] }),
})

const launch = (command: Command, log: number | "pipe", input?: string) =>
  Effect.callback<{ child: Child; output: () => string }, EmbeddedError>((resume) => {
    const child = spawn(command.file, command.args, {
      cwd: command.cwd,
      env: { ...basics(), ...command.env },
      stdio: [input === undefined ? "ignore" : "pipe", log, log],
      detached: log !== "pipe",
      ...(command.user === undefined ? {} : { uid: command.user.uid, gid: command.user.gid }),
    })
    let output = ""
    child.stdout?.on("data", (chunk) => output += chunk)
    child.stderr?.on("data", (chunk) => output += chunk)
    const ended = new Promise<Ended>((resolve) =>
      child.once(log === "pipe" ? "close" : "exit", (code, signal) => resolve({ code, signal }))
    )
    child.once("error", (cause) => resume(Effect.fail(attempting(`cannot run ${command.file}`)(cause))))
    child.once("spawn", () => {
      child.stdin?.end(input)
      resume(Effect.succeed({
        child: { pid: child.pid!, exited: Effect.promise(() => ended) },
        output: () => output,
      }))
    })
  })

/** Runs a tool to its end and returns its output; fails with its last lines where its exit code is not 0. */
export const run = Effect.fn("Children.run")(function* (command: Command, input?: string) {
  const { ended, output } = yield* Effect.acquireUseRelease(
    launch(command, "pipe", input),
    ({ child, output }) => Effect.map(child.exited, (ended) => ({ ended, output: output() })),
    ({ child }, exit) => Effect.sync(() => Exit.isFailure(exit) && signal(child.pid, "SIGKILL")),
  )
  if (ended.code === 0) return output
  return yield* new EmbeddedError({
    message: `${command.file} ended with ${ended.code ?? ended.signal}: ${lastLines(output)}`,
  })
})

/**
 * Starts a server, which is stopped by `farewell` when the scope closes. Its output goes to `log`; the log of the run
 * before is kept as `log`.1.
 */
export const serve = Effect.fn("Children.serve")(function* (command: Command, log: string, farewell: Farewell) {
  const started = Effect.acquireUseRelease(
    Effect.try({
      try: () => {
        if (existsSync(log)) renameSync(log, `${log}.1`)
        return openSync(log, "a", 0o600)
      },
      catch: attempting(`cannot write ${log}`),
    }),
    (fd) => launch(command, fd),
    (fd) => Effect.sync(() => closeSync(fd)),
  )
  const { child } = yield* Effect.acquireRelease(
    Effect.map(started, ({ child }) => {
      // A process that ends without closing its scopes leaves no server behind.
      const gone = atExit(() => signal(child.pid, farewell[0]![0]))
      return { child, gone }
    }),
    ({ child, gone }) => Effect.ensuring(dismiss(child, farewell), gone),
  )
  return child
})

/** Sends the signals of `farewell` one after another until the process is gone. */
export const dismiss = (child: Child, farewell: Farewell): Effect.Effect<void> =>
  Effect.gen(function* () {
    for (const [name, patience] of farewell) {
      signal(child.pid, name)
      if (
        yield* Effect.as(child.exited, true).pipe(Effect.timeoutOrElse({
          duration: patience,
          orElse: () => Effect.succeed(false),
        }))
      ) return
    }
  })

/** The end of a log, short enough for one message. */
export const lastLines = (text: string) => text.trim().split("\n").slice(-6).join(" | ")

/** Sends a signal to a process that may have ended by itself. */
export const signal = (pid: number, name: NodeJS.Signals) => {
  try {
    process.kill(pid, name)
  } catch {
    // The process has ended.
  }
}
