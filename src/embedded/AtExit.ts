/**
 * Clean-up for a process that ends before its scopes have closed: after an uncaught error, or by an exit in the middle.
 * Synchronous and best effort; a SIGKILL leaves no time for it.
 */
import { Effect } from "effect"
import process from "node:process"

const last = new Set<() => void>()

const all = () => {
  for (const act of last) {
    try {
      act()
    } catch {
      // The other actions still run.
    }
  }
}

/** Runs `act` when the process exits, unless the returned effect was run before. */
export const atExit = (act: () => void): Effect.Effect<void> => {
  if (last.size === 0) process.on("exit", all)
  last.add(act)
  return Effect.sync(() => {
    last.delete(act)
    if (last.size === 0) process.off("exit", all)
  })
}
