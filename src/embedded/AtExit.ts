/**
 * What is still to be done when the process ends before a scope has closed: after an error that nothing caught, or by
 * an exit in the middle. Synchronous and best effort; a SIGKILL leaves no time for it.
 */
import { Effect } from "effect"
import process from "node:process"

const last = new Set<() => void>()

const all = () => {
  for (const act of last) {
    try {
      act()
    } catch {
      // The others are to have their turn.
    }
  }
}

/** Has `act` done when the process exits, until the effect that is given was run. */
export const atExit = (act: () => void): Effect.Effect<void> => {
  if (last.size === 0) process.on("exit", all)
  last.add(act)
  return Effect.sync(() => {
    last.delete(act)
    if (last.size === 0) process.off("exit", all)
  })
}
