/** How far a replay has come that goes on in the background: what it has yet to send again is counted now and then. */
import { useSignal } from "@preact/signals"
import type { JSX } from "preact"
import { useEffect } from "preact/hooks"
import { announce } from "./Announce.tsx"

const count = new Intl.NumberFormat("en")

export const ReplayProgress = ({ close, done, left, of, seconds }: {
  /** How many were to be sent again at first. */
  readonly of: number
  /** Counts those of the same span that are not sent again yet. */
  readonly left: (signal: AbortSignal) => Promise<number>
  /** Between two counts. */
  readonly seconds: number
  /** What is asked for anew at the end. */
  readonly done: () => unknown
  readonly close: () => void
}): JSX.Element => {
  const waiting = useSignal(of)
  useEffect(() => {
    const running = new AbortController()
    const { signal } = running
    let timer: ReturnType<typeof setTimeout> | undefined
    const look = async () => {
      try {
        // Counts may overtake each other: what was sent again stays so.
        waiting.value = Math.min(waiting.value, await left(signal))
      } catch {
        // A count that fails, as one too many in a minute, is made again later: the replay itself goes on.
      }
      if (signal.aborted) return
      if (waiting.value > 0) timer = setTimeout(look, seconds * 1_000)
      else {
        announce("All are on their way again.")
        void done()
      }
    }
    timer = setTimeout(look, 500)
    return () => {
      clearTimeout(timer)
      running.abort()
    }
  }, [])
  const sent = of - waiting.value
  return (
    <>
      <p role="status">
        {count.format(sent)} of {count.format(of)} {of === 1 ? "is" : "are"} on {of === 1 ? "its" : "their"} way again.
      </p>
      <progress class="bar" max={of} value={sent} aria-label="Sent again" />
      <p class="note">It goes on in the background, whether this is open or not.</p>
      <div class="actions">
        <button type="button" onClick={close}>Close</button>
      </div>
    </>
  )
}
