/**
 * Bells wake whoever waits for a topic: at once in this process, through one coalesced core message (`bell.v1.<topic>`,
 * at most one per 5 ms and topic) in the others. A bell is never the truth and may be lost: every waiter also looks
 * again by itself after its `maxMillis`. Nothing here is PostgreSQL's NOTIFY, which costs two thirds of the commits.
 */
import { Context, Effect, Latch, Layer, Scope } from "effect"
import { Bus } from "./Bus.ts"

/** One waiter's own memory: a ring while it was at work is not lost on it. Several rings are one. */
export interface Bell {
  /** Returns at the first ring since the last return, at the latest after `maxMillis`. */
  readonly wait: (maxMillis: number) => Effect.Effect<void>
}

export class Bells extends Context.Service<Bells, {
  /** Wakes the topic's waiters, here and elsewhere. After a commit: `sql.afterCommit(bells.ring(topic))`. */
  readonly ring: (topic: string) => Effect.Effect<void>
  /** The same from code outside Effect. */
  readonly ringUnsafe: (topic: string) => void
  /** A waiter for loops that work between waits. */
  readonly bell: (topic: string) => Effect.Effect<Bell, never, Scope.Scope>
  /** Waits once, for rings from now on. */
  readonly wait: (topic: string, maxMillis: number) => Effect.Effect<void>
}>()("bailiwick/services/platform/Bells") {
  static readonly layer = Layer.effect(
    Bells,
    Effect.gen(function* () {
      const bus = yield* Bus
      const self = crypto.randomUUID()
      const waiting = new Map<string, Set<Latch.Latch>>()
      const unsent = new Set<string>()
      const sending = Latch.makeUnsafe(false)

      const wake = (topic: string) => waiting.get(topic)?.forEach((latch) => latch.openUnsafe())

      const ringUnsafe = (topic: string) => {
        wake(topic)
        unsent.add(topic)
        sending.openUnsafe()
      }

      yield* bus.subscribeCore("bell.v1.*", (from, subject) => {
        if (from !== self) wake(subject.slice("bell.v1.".length))
      })
      yield* Effect.gen(function* () {
        yield* sending.await
        sending.closeUnsafe()
        const topics = [...unsent]
        unsent.clear()
        for (const topic of topics) yield* bus.publishCore(`bell.v1.${topic}`, self)
        yield* Effect.sleep("5 millis")
      }).pipe(Effect.forever, Effect.forkScoped)

      const bell = (topic: string) =>
        Effect.map(
          Effect.acquireRelease(
            Effect.sync(() => {
              const latch = Latch.makeUnsafe(false)
              const latches = waiting.get(topic) ?? new Set()
              waiting.set(topic, latches.add(latch))
              return latch
            }),
            (latch) => Effect.sync(() => waiting.get(topic)?.delete(latch)),
          ),
          (latch): Bell => ({
            wait: (maxMillis) =>
              latch.await.pipe(
                Effect.timeoutOption(maxMillis),
                Effect.andThen(Effect.sync(() => void latch.closeUnsafe())),
              ),
          }),
        )

      return Bells.of({
        ring: (topic) => Effect.sync(() => ringUnsafe(topic)),
        ringUnsafe,
        bell,
        wait: (topic, maxMillis) => Effect.scoped(Effect.flatMap(bell(topic), (own) => own.wait(maxMillis))),
      })
    }),
  )
}
