/** The live stream of notifications (`text/event-stream`, HTML Living Standard, 9.2), resumed by Last-Event-ID. */
import type { Problem } from "./ClientProblem.ts"
import type { Notification } from "./Contract.ts"
import { passes, pause, pauseOf, type Send } from "./Transport.ts"

interface Counts {
  /** The position: `lastEventId` of a later stream goes on from here. */
  readonly id: string
  readonly total: number
  readonly unread: number
}

/** An event of the live stream. After `reset` the list has to be read again. */
export type NotificationEvent =
  & Counts
  & (
    | { readonly event: "notification"; readonly notification: Notification }
    | { readonly event: "read-all"; readonly read_at: string }
    | { readonly event: "counts" | "reset" }
  )

/** Where a stream begins and when it ends. */
export interface NotificationsOptions {
  readonly signal?: AbortSignal | undefined
  /** The `id` of the last event that was seen; by default the stream begins now, with the counts. */
  readonly lastEventId?: string | undefined
}

/** The server is heard of every 15 s: a connection that is silent for longer is dead. */
const silentMillis = 45_000

/** The events of one connection, and the delay in milliseconds that the server wishes before the next one. */
const eventsOf = async function* (
  body: ReadableStream<Uint8Array>,
  heard: () => void,
): AsyncGenerator<NotificationEvent | number, void, undefined> {
  const decoder = new TextDecoder()
  const reader = body.getReader()
  try {
    for (let rest = "";;) {
      const { done, value } = await reader.read()
      if (done) return
      heard()
      const blocks = (rest + decoder.decode(value, { stream: true })).split("\n\n")
      rest = blocks.pop()!
      for (const block of blocks) {
        const { data, event, id, retry } = Object.fromEntries(block.split("\n").map((line) => line.split(/: ?(.*)/s)))
        if (retry) yield Number(retry)
        if (data) yield { id, event, ...JSON.parse(data) }
      }
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
}

/** One connection after the other. */
export const notificationsOf = (send: Send) =>
  async function* (
    { lastEventId, signal }: NotificationsOptions = {},
  ): AsyncGenerator<NotificationEvent, void, undefined> {
    let delay = 1000
    for (let tries = 0;; tries++) {
      const silent = new AbortController()
      let timer: ReturnType<typeof setTimeout> | undefined
      const heard = () => {
        clearTimeout(timer)
        timer = setTimeout(() => silent.abort(), silentMillis)
      }
      let retryAfter: number | undefined
      try {
        heard()
        const request = {
          headers: { accept: "text/event-stream", "last-event-id": lastEventId },
          signal: signal ? AbortSignal.any([signal, silent.signal]) : silent.signal,
        }
        const body = await send(
          "GET",
          "/v1/notifications/stream",
          request,
          (response) => Promise.resolve(response.body!),
        )
        for await (const event of eventsOf(body, heard)) {
          tries = 0
          if (typeof event === "number") delay = event
          else {
            lastEventId = event.id
            yield event
          }
        }
      } catch (error) {
        signal?.throwIfAborted()
        const problem = error as Problem
        if (problem.status && !passes(problem)) throw error
        retryAfter = problem.retryAfter
      } finally {
        clearTimeout(timer)
      }
      await pause(delay + pauseOf(tries, retryAfter), signal)
    }
  }
