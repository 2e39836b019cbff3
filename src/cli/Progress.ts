/** A line on standard error that is overwritten while work goes on; only on a terminal. */
import { Clock, Effect } from "effect"
import process from "node:process"

const everyMillis = 100
const clear = "\r\u001b[K"

export interface Progress {
  /** Shows the progress, ten times a second at most. */
  readonly tell: (text: string) => Effect.Effect<void>
  /** Removes the line, before other output and at the end. */
  readonly clear: Effect.Effect<void>
}

export const make = Effect.sync((): Progress => {
  if (process.stderr.isTTY !== true) return { tell: () => Effect.void, clear: Effect.void }
  let last = -Infinity
  const write = (text: string) => Effect.sync(() => void process.stderr.write(text))
  return {
    tell: Effect.fnUntraced(function* (text: string) {
      const now = yield* Clock.currentTimeMillis
      if (now - last < everyMillis) return
      last = now
      yield* write(`${clear}${text}`)
    }),
    clear: write(clear),
  }
})
