/**
 * Processes that this program did not start: whether they live, their command line, their start. A pid alone identifies
 * no process, since pids are reused: a recorded process is known by pid and start, a server by pid and command line.
 */
import { Effect, Schedule } from "effect"
import { readFileSync } from "node:fs"
import process from "node:process"
import { type Child, run } from "./ChildProcess.ts"

/** A process that this program did not start; its end is found by polling. */
export const stranger = (pid: number): Child => ({
  pid,
  exited: Effect.suspend(() => isAlive(pid) ? Effect.fail("alive") : Effect.succeed({ code: null, signal: null })).pipe(
    Effect.retry(Schedule.spaced("20 millis")),
    Effect.orDie,
  ),
})

/**
 * Whether the process exists and is not a zombie that its parent has not reaped (as in a container without an init).
 */
export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EPERM") return false
  }
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, "latin1"))
  } catch {
    return process.platform !== "linux"
  }
}

/** The process's arguments, or null where the system does not show them. */
export const commandLine = Effect.fn("ProcessTable.commandLine")(function* (pid: number) {
  if (process.platform === "linux") {
    return yield* Effect.try(() => readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ")).pipe(
      Effect.orElseSucceed(() => null),
    )
  }
  return yield* ask(pid, "command=")
})

/** The start of a process, as the system writes it; null where there is no such process. */
export const startOf = Effect.fn("ProcessTable.startOf")(function* (pid: number) {
  if (process.platform !== "linux") return yield* ask(pid, "lstart=")
  return yield* Effect.try(() => readFileSync(`/proc/${pid}/stat`, "latin1").split(") ")[1]?.split(" ")[19] ?? null)
    .pipe(
      Effect.orElseSucceed(() => null),
    )
})

const ask = (pid: number, field: string) =>
  run({ file: "ps", args: ["-o", field, "-p", String(pid)], cwd: "/" }).pipe(
    Effect.map((text) => text.trim()),
    Effect.orElseSucceed(() => null),
  )
