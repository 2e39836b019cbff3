/** The button of a file that takes many answers: it says how far it is, and stops where the visitor wants or leaves. */
import { useSignal } from "@preact/signals"
import type { JSX } from "preact"
import { useEffect, useRef } from "preact/hooks"
import type { Refused } from "../contract/Ask.ts"
import { refusalOf } from "../Resource.ts"
import { announce } from "./Announce.tsx"
import { Failure } from "./Failure.tsx"

const count = new Intl.NumberFormat("en")

export const LongDownload = ({ gather, label, of }: {
  readonly label: string
  /** What is counted on the way: `rows`. */
  readonly of: string
  /** Asks for everything; `tell` hears how much there is so far. Its result keeps the file, and gives what is announced. */
  readonly gather: (signal: AbortSignal, tell: (n: number) => void) => Promise<() => string>
}): JSX.Element => {
  const got = useSignal<number | null>(null)
  const failure = useSignal<Refused | null>(null)
  const running = useRef<AbortController | null>(null)
  useEffect(() => () => running.current?.abort(), [])
  const stop = () => {
    running.current?.abort()
    running.current = null
    got.value = null
  }
  const run = async () => {
    const { signal } = running.current = new AbortController()
    got.value = 0
    failure.value = null
    try {
      const keep = await gather(signal, (n) => void (signal.aborted || (got.value = n)))
      if (signal.aborted) return
      announce(keep())
    } catch (cause) {
      if (signal.aborted) return
      failure.value = refusalOf(cause)
    }
    stop()
  }
  return (
    <>
      {got.value === null ? <button type="button" onClick={() => void run()}>{label}</button> : (
        <>
          <span class="note" role="status">{count.format(got.value)} {of} so far</span>
          <button type="button" onClick={stop}>Stop the download</button>
        </>
      )}
      <Failure of={failure} />
    </>
  )
}
