/**
 * Whoever closes the terminal ends what runs in it: in order, as by Ctrl-C, since servers that were started for it would be
 * left running. Who wants it to go on says so beforehand (`nohup`), and that stands.
 */
import { readFileSync } from "node:fs"
import process from "node:process"

/** Whether this process was started with SIGHUP ignored; so it is taken where the system does not tell. */
export const hangUpIsIgnored = (): boolean => {
  try {
    const [, mask] = /^SigIgn:\s*[0-9a-f]*([0-9a-f])$/m.exec(readFileSync("/proc/self/status", "utf8")) ?? []
    return mask === undefined || (parseInt(mask, 16) & 1) === 1
  } catch {
    return true
  }
}

/** For a program's own process, once. */
export const endOnHangUp = (): void => {
  if (!hangUpIsIgnored()) process.once("SIGHUP", () => process.kill(process.pid, "SIGTERM"))
}
