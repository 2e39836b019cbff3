/** What is believed of a page of events, before anything of it is applied. */
import { announcedBy } from "./EventProjection.ts"
import { Refusal } from "./Refusal.ts"
import { type Pins, type VerifiedEvent, verifyEvent } from "./Verify.ts"

/** Messages between two looks at what else the process has to do: a page of them takes its milliseconds. */
const verifiedAtOnce = 64

const announces = (event: VerifiedEvent) => announcedBy(event).length > 0

const others = () => new Promise<void>((resolve) => setImmediate(resolve))

/**
 * All events of a page; or, where they announce keys, those before the first that no pinned key signed, with why that one
 * is refused: it is asked for again once they are applied. Rejects where a message cannot be believed, wherever in the page
 * it is: of a page that was tampered with nothing is applied.
 */
export const believed = async (
  sets: ReadonlyArray<string>,
  pins: Pins,
): Promise<{ readonly good: ReadonlyArray<VerifiedEvent>; readonly refused: Refusal | null }> => {
  const good: Array<VerifiedEvent> = []
  for (const [i, set] of sets.entries()) {
    if (i % verifiedAtOnce === verifiedAtOnce - 1) await others()
    try {
      good.push(await verifyEvent(set, pins))
    } catch (error) {
      const announced = error instanceof Refusal && error.step === "kid" && good.some(announces)
      if (!announced) throw error
      return { good, refused: error }
    }
  }
  return { good, refused: null }
}
