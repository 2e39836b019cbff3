/**
 * Ends the process in order when its terminal closes, as Ctrl-C does; otherwise its embedded servers would be
 * left running. `nohup`, which ignores SIGHUP, is respected.
 */
import { readFileSync } from "node:fs"
import process from "node:process"

/** Whether this process was started with SIGHUP ignored; true where the system does not tell. */
export const hangUpIsIgnored = (): boolean => {
  try {
    const [, mask] = /^SigIgn:\s*[0-9a-f]*([0-9a-f])$/m.exec(readFileSync("/proc/self/status", "utf8")) ?? []
    return mask === undefined || (parseInt(mask, 16) & 1) === 1
  } catch {
    return true
  }
}

/** Call once per process. */
export const endOnHangUp = (): void => {
  if (!hangUpIsIgnored()) process.once("SIGHUP", () => process.kill(process.pid, "SIGTERM"))
}
