/** Progress of work that is no Effect: what it said last is shown now and then. */
import { Effect } from "effect"
import * as Progress from "../Progress.ts"

export const telling = Effect.gen(function* () {
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
