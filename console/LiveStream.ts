/** A live stream of the API, for as long as a page that follows it is looked at. */
import { type ReadonlySignal, useSignal } from "@preact/signals"
import { useEffect, useRef } from "preact/hooks"

/** The server sends an event at least every ten seconds: a stream without one for so many milliseconds is cut. */
const silenceMillis = 15_000
const againMillis = 5_000

/** When the last event came before the stream was cut; null while it goes on, undefined before its first event. */
export type Cut = ReadonlySignal<string | null | undefined>

/**
 * Follows a stream. The browser itself connects anew; where the server refuses, `refused` is called, which asks the API
 * and so finds out why. Each connection begins with the whole state, so nothing is missed by a cut.
 */
export const useLiveStream = (asked: {
  readonly path: string
  readonly subjects: ReadonlyArray<string>
  readonly hear: (subject: string, data: unknown) => void
  readonly refused: () => unknown
  /** Whether to follow it now. */
  readonly on?: boolean
}): Cut => {
  const { on = true, path } = asked
  const cut = useSignal<string | null | undefined>(undefined)
  const latest = useRef(asked)
  latest.current = asked
  useEffect(() => {
    if (!on) return
    let stream: EventSource | null = null
    let heardAt = Date.now()
    let silence: ReturnType<typeof setTimeout> | undefined
    let again: ReturnType<typeof setTimeout> | undefined
    const lost = () => {
      cut.value ??= new Date(heardAt).toISOString()
    }
    const listen = () => {
      clearTimeout(silence)
      silence = setTimeout(lost, silenceMillis)
    }
    const hear = (subject: string, data: string) => {
      heardAt = Date.now()
      cut.value = null
      listen()
      latest.current.hear(subject, JSON.parse(data))
    }
    const close = () => {
      clearTimeout(silence)
      clearTimeout(again)
      stream?.close()
      stream = null
    }
    const open = () => {
      close()
      const own = stream = new EventSource(path)
      listen()
      own.addEventListener("error", () => {
        lost()
        if (own.readyState !== EventSource.CLOSED) return
        void latest.current.refused()
        again = setTimeout(open, againMillis)
      })
      for (const subject of latest.current.subjects) {
        own.addEventListener(subject, ({ data }) => hear(subject, data))
      }
    }
    const look = () => document.visibilityState === "visible" ? open() : close()
    look()
    document.addEventListener("visibilitychange", look)
    return () => {
      document.removeEventListener("visibilitychange", look)
      close()
      cut.value = undefined
    }
  }, [path, on])
  return cut
}
