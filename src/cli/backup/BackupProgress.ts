/** Progress of work outside of Effect: shows its last message every 200 ms. */
import { Effect } from "effect"
import * as Progress from "../Progress.ts"

export const backupProgress = Effect.gen(function* () {
  const progress = yield* Progress.make
  let text = ""
  yield* Effect.suspend(() => progress.tell(text)).pipe(
    Effect.andThen(Effect.sleep("200 millis")),
    Effect.forever,
    Effect.forkScoped,
  )
  return {
    tell: (now: string) => void (text = now),
    clear: Effect.suspend(() => {
      text = ""
      return progress.clear
    }),
  }
})
