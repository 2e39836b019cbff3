/**
 * Receives a project's lifecycle by a stream of the Shared Signals Framework 1.0: pushed to the product's own endpoint
 * (RFC 8935), or polled (RFC 8936). It has the guarantees of following by cursor (SyncLoop.ts) and the same local
 * state: a message is accepted only after it is committed.
 *
 * A stream carries only new events, so the sync loop runs beside it: it fetches the snapshot and earlier events, opens
 * access, sends the acknowledgements, fills gaps in the stream, and runs alone while the stream is not enabled. It also
 * checks regularly for events that the stream never delivered.
 *
 * Killed at any step: a message that was committed and not yet accepted comes again, and changes nothing.
 */
import { createHash, randomUUID, timingSafeEqual } from "node:crypto"
import { type Notice as SyncNotice, pause, syncLoop, type SyncOptions } from "./SyncLoop.ts"
import { Gap, Refusal, type RefusalStep } from "./Refusal.ts"
import type { PollAck, Polled } from "./Transmitter.ts"
import { type Message, type StreamMessage, type VerifiedEvent, verifyMessage } from "./Verify.ts"

export type Notice =
  | SyncNotice
  /** A verification message arrived; `solicited`: it answers a call of `verify`. */
  | { readonly kind: "verified"; readonly solicited: boolean }
  /** The transmitter changed the stream's status; while it is not `enabled`, events come by cursor alone. */
  | { readonly kind: "stream"; readonly status: "enabled" | "paused" | "disabled"; readonly reason: string | null }
  /** A message failed verification. */
  | { readonly kind: "refused"; readonly error: Refusal }

export interface ReceiveOptions<Tx> extends Omit<SyncOptions<Tx>, "notice"> {
  readonly streamId: string
  /**
   * The `Authorization` that the transmitter sends with each push. Without it any client may push, so a message that
   * fails verification is refused with a notice and does not close access.
   */
  readonly authorization?: string
  readonly notice?: (notice: Notice) => void
  /** Interval in which to check by cursor for events that never arrived; default: one minute. */
  readonly lookEveryMillis?: number
  /** A push that takes longer is answered 503; default: 8 s, since the transmitter gives up after 10 s. */
  readonly answerWithinMillis?: number
}

/** The response to a push: the status, and the body (to be sent as JSON) or null. */
export type Answer =
  | { readonly status: 202 | 503; readonly body: null }
  | { readonly status: 400; readonly body: { readonly err: string; readonly description: string } }

/** A receiver of one stream: `receive` and `run` for pushes, `poll` for polling, `verify` to test the stream. */
export interface Receiver {
  /**
   * Handles a push: the request's body and its `Authorization`. 202 after the message is committed, 400 with RFC
   * 8935's error if it fails verification, 503 if it should be pushed again. Never rejects.
   */
  readonly receive: (token: string, presented?: string | null) => Promise<Answer>
  /** Asks the transmitter for a verification message; a notice `verified` follows when it arrives. */
  readonly verify: () => Promise<void>
  /** Runs the sync loop beside pushes, beginning with the first snapshot. Resolves when the signal is aborted. */
  readonly run: () => Promise<void>
  /** Polls the stream, with the sync loop beside it. Resolves when the signal is aborted. */
  readonly poll: () => Promise<void>
}

const waitSeconds = 25
const maxVerificationStates = 100
/** Refusals of the stream's own messages, which say nothing about the project's history. */
const streamSteps: ReadonlySet<RefusalStep> = new Set(["verification", "stream"])

const accepted: Answer = { status: 202, body: null }
const retryLater: Answer = { status: 503, body: null }
const rejected = ({ code, message }: Refusal): Answer => ({ status: 400, body: { err: code, description: message } })

const equal = (a: string, b: string): boolean => {
  const hash = (text: string) => createHash("sha256").update(text).digest()
  return timingSafeEqual(hash(a), hash(b))
}

const before = (a: VerifiedEvent, b: VerifiedEvent) => a.epoch - b.epoch || a.position - b.position

/** The states of the latest verification messages that were asked for. */
const verificationStates = () => {
  const states = new Set<string>()
  return {
    has: (state: string) => states.has(state),
    /** Makes a new state. */
    next: (): string => {
      const state = randomUUID()
      states.add(state)
      for (const old of [...states].slice(0, -maxVerificationStates)) states.delete(old)
      return state
    },
  }
}

/** Turns of the sync loop, and the time since it last reached the head. */
const headChecks = (once: (waitSeconds: number) => Promise<boolean>, signal: AbortSignal, now: () => number) => {
  let checkedAt: number | null = null
  let running: Promise<boolean> | null = null

  /** One turn, shared by concurrent callers. */
  const turn = (waitSeconds = 0): Promise<boolean> =>
    running ??= once(waitSeconds).finally(() => {
      running = null
    })

  return {
    turn,
    /** Applies everything up to the head, by cursor. */
    catchUp: async (): Promise<void> => {
      while (!signal.aborted && !await turn());
      checkedAt = now()
    },
    /** An event may be missing: the next check is due at once. */
    forget: (): void => {
      checkedAt = null
    },
    isOlderThan: (millis: number): boolean => checkedAt === null || now() - checkedAt >= millis,
    /** Milliseconds until the last check is so old. */
    untilOlderThan: (millis: number): number => Math.max(0, (checkedAt ?? 0) + millis - now()),
  }
}

export const receiver = <Tx>(options: ReceiveOptions<Tx>): Receiver => {
  const { authorization, signal, streamId } = options
  const { answerWithinMillis = 8_000, lookEveryMillis = 60_000, notice = () => {}, now = Date.now } = options
  const own = syncLoop(options)
  const { remote } = own
  const states = verificationStates()
  const { catchUp, forget, isOlderThan, turn, untilOlderThan } = headChecks(own.turn, signal, now)
  let status: "enabled" | "paused" | "disabled" = "enabled"
  let wakeUp = new AbortController()

  const wake = () => {
    const woken = wakeUp
    wakeUp = new AbortController()
    woken.abort()
  }

  const pins = async () => own.expected((await own.standing())?.pins ?? options.pins)

  /**
   * Verifies a message. If its key is not pinned, an event that has not arrived yet may have announced it, so this
   * catches up by cursor and verifies once more. Null if an untrusted sender's message comes within a second of the
   * last check, so that such a sender cannot cause endless requests.
   */
  const verified = async (token: string, trusted: boolean): Promise<Message | null> => {
    try {
      return await verifyMessage(token, streamId, await pins())
    } catch (error) {
      if (!(error instanceof Refusal) || error.step !== "kid") throw error
      if (!trusted && !isOlderThan(1_000)) return null
      await catchUp()
      return await verifyMessage(token, streamId, await pins())
    }
  }

  const onStreamMessage = (message: StreamMessage) => {
    if (message.kind === "stream-updated") {
      status = message.status
      return notice({ kind: "stream", status, reason: message.reason })
    }
    const { state } = message
    if (state !== null && !states.has(state)) throw new Refusal("verification", "unknown state")
    notice({ kind: "verified", solicited: state !== null })
  }

  const has = async ({ epoch, position }: VerifiedEvent): Promise<boolean> => {
    const current = await own.standing()
    return current !== null && (current.epoch > epoch || current.epoch === epoch && current.position >= position)
  }

  /** Applies events in their order; fills a gap before them by cursor. */
  const applyInOrder = async (events: ReadonlyArray<VerifiedEvent>): Promise<void> => {
    const last = events.at(-1)
    if (last === undefined) return
    try {
      await own.apply(events)
    } catch (error) {
      if (!(error instanceof Gap)) throw error
      await catchUp()
      // The local state is at the head without this event: the event belongs to another history.
      if (!await has(last)) throw error
    }
  }

  const inTime = <A>(work: Promise<A>): Promise<A> => {
    const over = new AbortController()
    const tooLate = pause(answerWithinMillis, over.signal).then(() =>
      Promise.reject(new Error("the push took too long"))
    )
    return Promise.race([work, tooLate]).finally(() => over.abort())
  }

  /** Verifies and applies a pushed message; false if it should be pushed again. */
  const take = async (token: string): Promise<boolean> => {
    const message = await verified(token, authorization !== undefined)
    if (message === null) return false
    if (message.kind !== "event") onStreamMessage(message)
    else await applyInOrder([message.event])
    wake()
    return true
  }

  /** Closes access if the failure asks for it, and makes the sync loop check the history. */
  const onFailure = async (error: unknown): Promise<void> => {
    await own.recover(error).catch(() => {})
    forget()
    wake()
  }

  /** Applies the messages of a poll; returns their acknowledgements for the next poll. */
  const polled = async (sets: Polled["sets"]): Promise<PollAck> => {
    const events: Array<readonly [jti: string, event: VerifiedEvent]> = []
    const ack: Array<string> = []
    const setErrs: Record<string, { readonly err: string; readonly description: string }> = {}
    let failure: unknown = null
    for (const [jti, set] of sets) {
      try {
        const message = await verified(set, true)
        if (message === null) continue
        if ((message.kind === "event" ? message.event.jti : message.jti) !== jti) {
          throw new Refusal("jti", "differs from the jti in the poll response")
        }
        if (message.kind === "event") events.push([jti, message.event])
        else onStreamMessage(message)
        if (message.kind !== "event") ack.push(jti)
      } catch (error) {
        if (!(error instanceof Refusal)) throw error
        notice({ kind: "refused", error })
        setErrs[jti] = { err: error.code, description: error.message }
        if (!streamSteps.has(error.step)) failure ??= error
      }
    }
    try {
      await applyInOrder(events.map(([, event]) => event).sort(before))
      ack.push(...events.map(([jti]) => jti))
    } catch (error) {
      failure ??= error
    }
    if (failure !== null) await onFailure(failure)
    return { ack, setErrs }
  }

  /** The sync loop's part: everything while the stream is not enabled, otherwise a regular check for missing events. */
  const besideStream = async (): Promise<void> => {
    if (status !== "enabled") await turn(waitSeconds)
    else if (isOlderThan(lookEveryMillis)) await catchUp()
  }

  /** Repeats a step until the signal is aborted; pauses after one that failed, longer after each further failure. */
  const repeated = async (step: () => Promise<void>): Promise<void> => {
    while (!signal.aborted) {
      try {
        await step()
      } catch (error) {
        if (signal.aborted) return
        forget()
        await pause(await own.failed(error), signal)
      }
    }
  }

  const receive = async (token: string, presented?: string | null): Promise<Answer> => {
    if (authorization !== undefined && !equal(authorization, presented ?? "")) {
      return rejected(new Refusal("signature", "wrong Authorization"))
    }
    try {
      return await inTime(take(token.trim())) ? accepted : retryLater
    } catch (error) {
      if (!(error instanceof Refusal)) {
        await onFailure(error)
        return retryLater
      }
      notice({ kind: "refused", error })
      if (authorization !== undefined && !streamSteps.has(error.step)) await onFailure(error)
      return rejected(error)
    }
  }

  const run = (): Promise<void> =>
    repeated(async () => {
      const woken = AbortSignal.any([wakeUp.signal, signal])
      await besideStream()
      await own.acknowledge()
      own.succeeded()
      if (status === "enabled") await pause(untilOlderThan(lookEveryMillis), woken)
    })

  const poll = (): Promise<void> => {
    let pollAck: PollAck = { ack: [], setErrs: {} }
    return repeated(async () => {
      await besideStream()
      const { sets } = await remote.poll(streamId, pollAck, status !== "enabled")
      pollAck = { ack: [], setErrs: {} }
      pollAck = await polled(sets)
      await own.acknowledge()
      own.succeeded()
    })
  }

  return { receive, verify: () => remote.verification(streamId, states.next()), run, poll }
}
