/**
 * Receives a project's lifecycle by a stream of the Shared Signals Framework 1.0: pushed to the product's own endpoint (RFC
 * 8935), or polled (RFC 8936). It holds to what following by cursor holds to (SyncLoop.ts), with the same ledger: a
 * message is taken once it is committed, and only then answered for.
 *
 * A stream tells of new events and of nothing else, so the cursor goes along: it brings the snapshot and what came before
 * the stream, opens access, hears the product's acknowledgement, fills what a stream left out, and goes on alone while the
 * transmitter has stopped the stream. Now and then it looks whether anything never came.
 *
 * Killed at any step: what was committed and not answered for comes again, and changes nothing.
 */
import { createHash, randomUUID, timingSafeEqual } from "node:crypto"
import { course, type CourseOptions, type Notice as CourseNotice, pause } from "./SyncLoop.ts"
import { Gap, Refusal, type RefusalStep } from "./Refusal.ts"
import type { Polled, Settled } from "./Transmitter.ts"
import { type Message, type StreamMessage, type VerifiedEvent, verifyMessage } from "./Verify.ts"

export type Notice =
  | CourseNotice
  /** A verification message came; `solicited` where it answers `verify`. */
  | { readonly kind: "verified"; readonly solicited: boolean }
  /** The transmitter changed the stream's status; while it is not `enabled` the cursor goes on alone. */
  | { readonly kind: "stream"; readonly status: "enabled" | "paused" | "disabled"; readonly reason: string | null }
  /** Something was pushed that cannot be believed. */
  | { readonly kind: "refused"; readonly error: Refusal }

export interface ReceiveOptions<Tx> extends Omit<CourseOptions<Tx>, "notice"> {
  readonly streamId: string
  /**
   * What the transmitter was told to send as `Authorization` with each push. Without it anybody may push: what cannot be
   * believed is then refused and said, and closes nothing.
   */
  readonly authorization?: string
  readonly notice?: (notice: Notice) => void
  /** How often to look by cursor whether anything never came; a minute unless told. */
  readonly lookEveryMillis?: number
  /** How long a push may take before it is told to come again; 8 s unless told, since the transmitter gives up after 10. */
  readonly answerWithinMillis?: number
}

/** What to answer a push with: the status, and the body as JSON where there is one. */
export type Answer =
  | { readonly status: 202 | 503; readonly body: null }
  | { readonly status: 400; readonly body: { readonly err: string; readonly description: string } }

const waitSeconds = 25
const remembered = 100
/** Refused without a word about the project's history. */
const aside: ReadonlySet<RefusalStep> = new Set(["verification", "stream"])

const taken: Answer = { status: 202, body: null }
const later: Answer = { status: 503, body: null }
const no = ({ code, message }: Refusal): Answer => ({ status: 400, body: { err: code, description: message } })

const equal = (a: string, b: string): boolean => {
  const hash = (text: string) => createHash("sha256").update(text).digest()
  return timingSafeEqual(hash(a), hash(b))
}

const before = (a: VerifiedEvent, b: VerifiedEvent) => a.epoch - b.epoch || a.position - b.position

export const receiver = <Tx>(options: ReceiveOptions<Tx>) => {
  const { authorization, signal, streamId } = options
  const { answerWithinMillis = 8_000, lookEveryMillis = 60_000, notice = () => {}, now = Date.now } = options
  const own = course(options)
  const { remote } = own
  const states = new Set<string>()
  let status: "enabled" | "paused" | "disabled" = "enabled"
  let lookedAt: number | null = null
  let wake = new AbortController()
  let turning: Promise<boolean> | null = null

  const ring = () => {
    const woken = wake
    wake = new AbortController()
    woken.abort()
  }

  /** One turn by cursor, whoever asks for it. */
  const turn = (wait = 0): Promise<boolean> =>
    turning ??= own.turn(wait).finally(() => {
      turning = null
    })

  /** Everything up to the head is applied. */
  const look = async (): Promise<void> => {
    while (!signal.aborted && !await turn());
    lookedAt = now()
  }

  const pins = async () => own.expected((await own.standing())?.pins ?? options.pins)

  /**
   * A key that is not known yet may have been announced by what has not come yet: the cursor brings that. Null where it is
   * too early to ask again, so that nobody can make us ask for ever.
   */
  const believed = async (token: string, trusted: boolean): Promise<Message | null> => {
    try {
      return await verifyMessage(token, streamId, await pins())
    } catch (error) {
      if (!(error instanceof Refusal) || error.step !== "kid") throw error
      if (!trusted && lookedAt !== null && now() - lookedAt < 1_000) return null
      await look()
      return await verifyMessage(token, streamId, await pins())
    }
  }

  const heard = (message: StreamMessage) => {
    if (message.kind === "stream-updated") {
      status = message.status
      return notice({ kind: "stream", status, reason: message.reason })
    }
    const { state } = message
    if (state !== null && !states.has(state)) throw new Refusal("verification", "nobody asked for that state")
    notice({ kind: "verified", solicited: state !== null })
  }

  const has = async ({ epoch, position }: VerifiedEvent): Promise<boolean> => {
    const place = await own.standing()
    return place !== null && (place.epoch > epoch || place.epoch === epoch && place.position >= position)
  }

  /** Applies events in their order, with what is missing before them. */
  const settle = async (events: ReadonlyArray<VerifiedEvent>): Promise<void> => {
    const last = events.at(-1)
    if (last === undefined) return
    try {
      await own.apply(events)
    } catch (error) {
      if (!(error instanceof Gap)) throw error
      await look()
      // At the head, and it is not there: it is of another history.
      if (!await has(last)) throw error
    }
  }

  const inTime = <A>(work: Promise<A>): Promise<A> => {
    const over = new AbortController()
    const tooLate = pause(answerWithinMillis, over.signal).then(() => Promise.reject(new Error("not in time")))
    return Promise.race([work, tooLate]).finally(() => over.abort())
  }

  /** Whether it is taken; false where it should come again. */
  const take = async (token: string): Promise<boolean> => {
    const message = await believed(token, authorization !== undefined)
    if (message === null) return false
    if (message.kind !== "event") heard(message)
    else await settle([message.event])
    ring()
    return true
  }

  /** Closes where that is what it asks for, and has the cursor look what is so. */
  const alarmed = async (error: unknown): Promise<void> => {
    await own.recover(error).catch(() => {})
    lookedAt = null
    ring()
  }

  /** Takes what a poll brought, and gives what to say of it in the next. */
  const polled = async (sets: Polled["sets"]): Promise<Settled> => {
    const events: Array<readonly [jti: string, event: VerifiedEvent]> = []
    const ack: Array<string> = []
    const setErrs: Record<string, { readonly err: string; readonly description: string }> = {}
    let alarm: unknown = null
    for (const [jti, set] of sets) {
      try {
        const message = await believed(set, true)
        if (message === null) continue
        if ((message.kind === "event" ? message.event.jti : message.jti) !== jti) {
          throw new Refusal("jti", "not the message of that number")
        }
        if (message.kind === "event") events.push([jti, message.event])
        else heard(message)
        if (message.kind !== "event") ack.push(jti)
      } catch (error) {
        if (!(error instanceof Refusal)) throw error
        notice({ kind: "refused", error })
        setErrs[jti] = { err: error.code, description: error.message }
        if (!aside.has(error.step)) alarm ??= error
      }
    }
    try {
      await settle(events.map(([, event]) => event).sort(before))
      ack.push(...events.map(([jti]) => jti))
    } catch (error) {
      alarm ??= error
    }
    if (alarm !== null) await alarmed(alarm)
    return { ack, setErrs }
  }

  /** What the cursor is for: everything while the stream is stopped, and now and then what never came by it. */
  const alongside = async (): Promise<void> => {
    if (status !== "enabled") await turn(waitSeconds)
    else if (lookedAt === null || now() - lookedAt >= lookEveryMillis) await look()
  }

  return {
    /**
     * Takes one message that was pushed: the request's body, and its `Authorization`. 202 once it is committed, 400 with
     * RFC 8935's error where it cannot be believed, 503 where it should come again. Never rejects.
     */
    receive: async (token: string, presented?: string | null): Promise<Answer> => {
      if (authorization !== undefined && !equal(authorization, presented ?? "")) {
        return no(new Refusal("signature", "not pushed by the transmitter"))
      }
      try {
        return await inTime(take(token.trim())) ? taken : later
      } catch (error) {
        if (!(error instanceof Refusal)) {
          await alarmed(error)
          return later
        }
        notice({ kind: "refused", error })
        if (authorization !== undefined && !aside.has(error.step)) await alarmed(error)
        return no(error)
      }
    },

    /** Asks the transmitter to show that the stream works: a notice `verified` follows. */
    verify: async (): Promise<void> => {
      const state = randomUUID()
      states.add(state)
      for (const old of [...states].slice(0, -remembered)) states.delete(old)
      await remote.verification(streamId, state)
    },

    /** What goes on beside pushes, from the first snapshot on. Resolves when the signal is aborted. */
    run: async (): Promise<void> => {
      while (!signal.aborted) {
        const woken = AbortSignal.any([wake.signal, signal])
        try {
          await alongside()
          await own.acknowledge()
          own.succeeded()
          if (status === "enabled") await pause(Math.max(0, (lookedAt ?? 0) + lookEveryMillis - now()), woken)
        } catch (error) {
          if (signal.aborted) return
          lookedAt = null
          await pause(await own.failed(error), signal)
        }
      }
    },

    /** Polls the stream. Resolves when the signal is aborted. */
    poll: async (): Promise<void> => {
      let settled: Settled = { ack: [], setErrs: {} }
      while (!signal.aborted) {
        try {
          await alongside()
          const { sets } = await remote.poll(streamId, settled, status !== "enabled")
          settled = { ack: [], setErrs: {} }
          settled = await polled(sets)
          await own.acknowledge()
          own.succeeded()
        } catch (error) {
          if (signal.aborted) return
          lookedAt = null
          await pause(await own.failed(error), signal)
        }
      }
    },
  }
}
