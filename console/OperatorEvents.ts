/** The operators' live stream, for as long as a page that follows it is looked at. */
import { type ReadonlySignal, useSignal } from "@preact/signals"
import { useEffect, useRef } from "preact/hooks"
import type { AnswerOf } from "./contract/EndpointTypes.ts"

interface Events {
  readonly queues: AnswerOf<"queues">
  readonly backlogs: AnswerOf<"listBacklogs">
  readonly "dead-letters": unknown
  readonly findings: AnswerOf<"doctor">
}

/** A page's handlers of the events. */
export type Handlers = { readonly [Subject in keyof Events]?: (data: Events[Subject]) => void }

const subjects = ["queues", "backlogs", "dead-letters", "findings"] as const

/** The server sends queues every second: a stream without an event for so many milliseconds is cut. */
const silenceMillis = 15_000
const againMillis = 5_000

/** When the last event came before the stream was cut; null while it goes on, undefined before its first event. */
export type Cut = ReadonlySignal<string | null | undefined>

/**
 * Follows the stream. The browser itself connects anew; where the server refuses, `refused` is called, which asks the API
 * and so finds out why. Each connection begins with the whole state, so nothing is missed by a cut.
 */
export const useOperatorEvents = (handlers: Handlers, refused: () => unknown): Cut => {
  const cut = useSignal<string | null | undefined>(undefined)
  const latest = useRef({ handlers, refused })
  latest.current = { handlers, refused }
  useEffect(() => {
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
    const hear = (subject: keyof Events, data: string) => {
      heardAt = Date.now()
      cut.value = null
      listen()
      latest.current.handlers[subject]?.(JSON.parse(data))
    }
    const close = () => {
      clearTimeout(silence)
      clearTimeout(again)
      stream?.close()
      stream = null
    }
    const open = () => {
      close()
      const own = stream = new EventSource("/v1/operations/stream")
      listen()
      own.addEventListener("error", () => {
        lost()
        if (own.readyState !== EventSource.CLOSED) return
        void latest.current.refused()
        again = setTimeout(open, againMillis)
      })
      for (const subject of subjects) own.addEventListener(subject, ({ data }) => hear(subject, data))
    }
    const look = () => document.visibilityState === "visible" ? open() : close()
    look()
    document.addEventListener("visibilitychange", look)
    return () => {
      document.removeEventListener("visibilitychange", look)
      close()
    }
  }, [])
  return cut
}
