/**
 * Sends claimed deliveries: signs, POSTs, and passes on the results. Each POST is a plain promise, because a fiber per
 * delivery cost a quarter of the throughput; ConcurrencyLimiter decides which delivery may be sent when.
 */
import { Clock, Context, Effect, FiberSet, Layer } from "effect"
import { Failpoints } from "../platform/Failpoints.ts"
import { counted } from "../platform/MapSizes.ts"
import type { Outcome } from "../platform/Outbound.ts"
import { Outbound } from "../platform/Outbound.ts"
import { waitAskedBy } from "./RetryAfter.ts"
import { ConcurrencyLimiter } from "./Sender/ConcurrencyLimiter.ts"
import { maskEchoes } from "./Sender/EchoedHeaders.ts"
import type { WakeUp } from "./Sender/SenderQueues.ts"
import { interruptedOf, releasedOf, type Result, type Task } from "./Sender/Task.ts"
import { headersFor, secretsKept } from "./Signer.ts"

export interface SenderConfig {
  /** The deadline of one attempt, in milliseconds. */
  readonly timeoutMillis: number
  /** A POST begins only if its lease ends at least this long after its deadline, in milliseconds; default: 5 s. */
  readonly reserveMillis?: number
  /** Whether a first attempt that succeeds keeps its answer's header fields, too (`WEBHOOKS_SUCCESS_HEADERS`). */
  readonly successHeaders?: boolean
}

const defaultReserve = 5_000
const keepOnSuccess = 4 * 1024
const keepOnFailure = 64 * 1024

/** The lease of a claim, in milliseconds: the wait in memory, the deadline, and time to settle. */
export const leaseMillis = ({ reserveMillis = defaultReserve, timeoutMillis }: SenderConfig): number =>
  2 * timeoutMillis + 2 * reserveMillis

const decoder = new TextDecoder()

// PostgreSQL's text cannot contain U+0000; a receiver's response is stored for people, not for programs.
const textOf = (body: Outcome["body"]): string | null =>
  body === null ? null : decoder.decode(body).replaceAll("\0", "\u{fffd}")

const headersOf = ({ endpoint: { headers: sent } }: Task, { headers }: Outcome) =>
  headers === undefined || headers === null || sent === null ? headers ?? null : maskEchoes(headers, sent)

export class Sender extends Context.Service<Sender, {
  readonly slots: ConcurrencyLimiter<Task>
  /** Sends claimed tasks with reserved slots; each ends in `onResult`, once. After `stop` they are released at once. */
  readonly send: (tasks: ReadonlyArray<Task>) => void
  /** Sets the listener for results; the settlement calls it once. */
  readonly onResult: (listener: (result: Result) => void) => void
  /** Begins no more tasks; returns those that were not begun. */
  readonly stop: () => ReadonlyArray<Task>
  /** Whether `stop` was called: no more deliveries may be claimed. */
  readonly stopped: () => boolean
  /** Gives up on POSTs without a response; returns them as interrupted, since their outcome is unknown. */
  readonly abandon: () => ReadonlyArray<Result>
}>()("bailiwick/services/webhooks/Sender") {
  static readonly layer = (config: SenderConfig) =>
    Layer.effect(
      Sender,
      Effect.gen(function* () {
        const outbound = yield* Outbound
        const clock = yield* Clock.Clock
        const { hit } = yield* Failpoints
        const fork = yield* FiberSet.makeRuntime()
        const slots = new ConcurrencyLimiter<Task>()
        yield* counted("webhook lanes", () => slots.sizes.queues)
        yield* counted("webhook destinations", () => slots.sizes.hosts)
        yield* counted("webhooks with a backlog", () => slots.sizes.backlogged)
        yield* counted("signing secrets", secretsKept)
        const { successHeaders = false } = config
        const room = config.timeoutMillis + (config.reserveMillis ?? defaultReserve)
        let listener: (result: Result) => void = () => {}
        let stopped = false
        /** Tasks on the wire, with the time at which each began. */
        const begun = new Map<Task, number>()

        const finish = (task: Task, startedAt: number, outcome: Outcome) => {
          hit("post.after")
          // It was abandoned.
          if (!begun.delete(task)) return
          const answered = outcome.status !== null && outcome.error !== "timeout"
          slots.done(task, answered)
          const endedAt = startedAt + Math.round(outcome.durationMs)
          const asked = task.endpoint.honorsRetryAfter ? outcome.retryAfter : undefined
          listener({
            task,
            ending: answered ? "answered" : "silent",
            startedAt,
            durationMs: Math.round(outcome.durationMs),
            status: outcome.status,
            error: outcome.error,
            headers: headersOf(task, outcome),
            body: textOf(outcome.body),
            url: task.endpoint.url,
            ...(asked === undefined ? {} : { askedWait: waitAskedBy(asked, endedAt) }),
          })
          pump()
        }

        const begin = (task: Task) => {
          const startedAt = clock.currentTimeMillisUnsafe()
          if (task.leaseUntil - startedAt < room) {
            slots.done(task, null)
            listener(releasedOf(task))
            return
          }
          hit("post.before")
          begun.set(task, startedAt)
          const { url, secret, old, headers: custom } = task.endpoint
          const own = headersFor({
            deliveryId: task.deliveryId,
            eventType: task.eventType,
            attempt: task.attempt,
            timestampSeconds: Math.floor(startedAt / 1000),
            body: task.body,
            secrets: old !== null && old.until > startedAt ? [secret, old.secret] : [secret],
          })
          void outbound.post({
            url,
            headers: custom === null ? own : { ...own, ...custom },
            body: task.body,
            keepOnSuccess,
            keepOnFailure,
            // A later attempt has a row of its own, in which they cost little. So has a first one that is repeated because
            // a kill interrupted it, but the task does not say so.
            headersOnSuccess: successHeaders || task.attempt > 1 || task.cycle > 1,
          }).then((outcome) => finish(task, startedAt, outcome))
        }

        /** For rates: unlike the time of day, it is never set back. */
        const steadyMillis = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6

        const pump = () => {
          while (!stopped) {
            const task = slots.next(steadyMillis())
            if (task === undefined) break
            begin(task)
          }
          for (const wakeUp of slots.wakeUps()) {
            fork(Effect.delay(wake(wakeUp), Math.max(0, Math.ceil(wakeUp.at - steadyMillis()))))
          }
        }

        const wake = (wakeUp: WakeUp) =>
          Effect.sync(() => {
            slots.woken(wakeUp, steadyMillis())
            pump()
          })

        return Sender.of({
          slots,
          send: (tasks) => {
            if (stopped) {
              for (const task of tasks) {
                slots.drop(task.webhookId, 1)
                listener(releasedOf(task))
              }
              return
            }
            for (const task of tasks) slots.add(task)
            pump()
          },
          onResult: (to) => {
            listener = to
          },
          stop: () => {
            stopped = true
            return slots.drain()
          },
          stopped: () => stopped,
          abandon: () => {
            const given = [...begun].map(([task, startedAt]) => interruptedOf(task, startedAt))
            begun.clear()
            return given
          },
        })
      }),
    )
}
