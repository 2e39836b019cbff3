/** Processes that are stopped and continued by signals. */
import { Effect, Schedule } from "effect"
import { readdirSync, readFileSync } from "node:fs"
import process from "node:process"

const isStopped = (pid: number) =>
  process.platform !== "linux" ||
  readdirSync(`/proc/${pid}/task`).every((task) =>
    /\) [TtZX] /.test(readFileSync(`/proc/${pid}/task/${task}/stat`, "latin1"))
  )

/**
 * Stops a process, and completes once each of its threads has stopped: until then others of its threads still answer,
 * for many milliseconds where the machine is busy.
 */
export const freeze = (pid: number) =>
  Effect.sync(() => process.kill(pid, "SIGSTOP")).pipe(
    Effect.andThen(
      Effect.suspend(() => isStopped(pid) ? Effect.void : Effect.fail("runs")).pipe(
        Effect.retry(Schedule.spaced("1 millis")),
        Effect.orDie,
      ),
    ),
  )

/** A process that is stopped until the scope closes; it may have been ended by then. */
export const keepFrozen = (pid: number) =>
  Effect.acquireRelease(freeze(pid), () =>
    Effect.sync(() => {
      try {
        process.kill(pid, "SIGCONT")
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error
      }
    }))
