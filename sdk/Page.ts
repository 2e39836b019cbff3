/** Verifies a page of events before any of them is applied. */
import { announcedBy } from "./EventProjection.ts"
import { Refusal } from "./Refusal.ts"
import { type Pins, type VerifiedEvent, verifyEvent } from "./Verify.ts"

/** Verifies this many messages before it yields to the event loop: a whole page takes milliseconds. */
const verifiedAtOnce = 64

const announces = (event: VerifiedEvent) => announcedBy(event).length > 0

const yieldToOthers = () => new Promise<void>((resolve) => setImmediate(resolve))

/**
 * The events of a page. If an event announces keys and a later one is signed by a key that is not pinned: the events
 * before that one, and its Refusal; the caller asks for it again after applying them. Rejects if any other message
 * fails verification, wherever it is in the page, so that nothing of a manipulated page is applied.
 */
export const verifyPage = async (
  sets: ReadonlyArray<string>,
  pins: Pins,
): Promise<{ readonly good: ReadonlyArray<VerifiedEvent>; readonly refused: Refusal | null }> => {
  const good: Array<VerifiedEvent> = []
  for (const [i, set] of sets.entries()) {
    if (i % verifiedAtOnce === verifiedAtOnce - 1) await yieldToOthers()
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
