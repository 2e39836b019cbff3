/**
 * Processes that this program did not start: whether they live, what they are, since when. A pid alone names nobody,
 * since it is given out again: a recorded process is known by pid and start, a server by pid and command line.
 */
import { Effect, Schedule } from "effect"
import { readFileSync } from "node:fs"
import process from "node:process"
import { type Child, run } from "./Children.ts"

/** A process that this program did not start, as far as anyone can wait for it. */
export const stranger = (pid: number): Child => ({
  pid,
  exited: Effect.suspend(() => isAlive(pid) ? Effect.fail("alive") : Effect.succeed({ code: null, signal: null })).pipe(
    Effect.retry(Schedule.spaced("20 millis")),
    Effect.orDie,
  ),
})

/** Whether the process exists and is more than a zombie that nobody reaped (as in a container without an init). */
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
export const commandLine = Effect.fn("Children.commandLine")(function* (pid: number) {
  if (process.platform === "linux") {
    return yield* Effect.try(() => readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ")).pipe(
      Effect.orElseSucceed(() => null),
    )
  }
  return yield* ask(pid, "command=")
})

/** When a process was started, in the system's own words; null where there is none. */
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
