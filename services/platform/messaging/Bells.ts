/**
 * Bells wake whoever waits for a topic: at once in this process, through one coalesced core message (`bell.v1.<topic>`,
 * at most one per 5 ms and topic) in the others. A bell is never the truth and may be lost: every waiter also looks
 * again by itself after its `maxMillis`. Nothing here is PostgreSQL's NOTIFY, which costs two thirds of the commits.
 *
 * A ring may name whom it is for (keys of the topic, such as projects): then those who wait for another key sleep on.
 * Whoever waits for the topic alone hears every ring, and a ring without keys is heard by all. A message names at most a
 * hundred keys; what rang for more is told without any.
 */
import { Context, Effect, Latch, Layer, Scope } from "effect"
import { Bus } from "./Bus.ts"
import { counted } from "../MapSizes.ts"

/** One waiter's own memory: a ring while it was at work is not lost on it. Several rings are one. */
export interface Bell {
  /** Returns at the first ring since the last return, at the latest after `maxMillis`. */
  readonly wait: (maxMillis: number) => Effect.Effect<void>
}

/** Keys that one message names. */
const mostKeys = 100

export class Bells extends Context.Service<Bells, {
  /** Wakes the topic's waiters, here and elsewhere. After a commit: `sql.afterCommit(bells.ring(topic))`. */
  readonly ring: (topic: string, keys?: ReadonlyArray<string>) => Effect.Effect<void>
  /** The same from code outside Effect. */
  readonly ringUnsafe: (topic: string, keys?: ReadonlyArray<string>) => void
  /** A waiter for loops that work between waits; with a key, only for rings that may be for it. */
  readonly bell: (topic: string, key?: string) => Effect.Effect<Bell, never, Scope.Scope>
  /** Waits once, for rings from now on. */
  readonly wait: (topic: string, maxMillis: number) => Effect.Effect<void>
}>()("bailiwick/services/platform/messaging/Bells") {
  static readonly layer = Layer.effect(
    Bells,
    Effect.gen(function* () {
      const bus = yield* Bus
      const self = crypto.randomUUID()
      const waiting = new Map<string, Map<string | null, Set<Latch.Latch>>>()
      yield* counted("waiters", () => [...waiting.values()].reduce((sum, ears) => sum + ears.size, 0))
      const unsent = new Map<string, Set<string> | null>()
      const sending = Latch.makeUnsafe(false)

      const open = (latches: Set<Latch.Latch> | undefined) => latches?.forEach((latch) => latch.openUnsafe())

      const wake = (topic: string, keys: ReadonlyArray<string>) => {
        const ears = waiting.get(topic)
        if (ears === undefined) return
        if (keys.length === 0) return ears.forEach(open)
        open(ears.get(null))
        for (const key of keys) open(ears.get(key))
      }

      const ringUnsafe = (topic: string, keys: ReadonlyArray<string> = []) => {
        wake(topic, keys)
        const known = unsent.get(topic)
        if (keys.length === 0 || known === null) unsent.set(topic, null)
        else {
          const all = known ?? new Set<string>()
          keys.forEach((key) => all.add(key))
          unsent.set(topic, all.size > mostKeys ? null : all)
        }
        sending.openUnsafe()
      }

      yield* bus.subscribeCore("bell.v1.*", (data, subject) => {
        const [from, ...keys] = data.split("\n")
        if (from !== self) wake(subject.slice("bell.v1.".length), keys)
      })
      yield* Effect.gen(function* () {
        yield* sending.await
        sending.closeUnsafe()
        const rung = [...unsent]
        unsent.clear()
        for (const [topic, keys] of rung) yield* bus.publishCore(`bell.v1.${topic}`, [self, ...(keys ?? [])].join("\n"))
        yield* Effect.sleep("5 millis")
      }).pipe(Effect.forever, Effect.forkScoped)

      const enter = (topic: string, key: string | null) => {
        const latch = Latch.makeUnsafe(false)
        const ears = waiting.get(topic) ?? new Map<string | null, Set<Latch.Latch>>()
        waiting.set(topic, ears)
        ears.set(key, (ears.get(key) ?? new Set()).add(latch))
        return latch
      }

      const leave = (topic: string, key: string | null, latch: Latch.Latch) => {
        const ears = waiting.get(topic)
        const latches = ears?.get(key)
        latches?.delete(latch)
        if (latches?.size === 0) ears?.delete(key)
      }

      const bell = (topic: string, key: string | null = null) =>
        Effect.map(
          Effect.acquireRelease(
            Effect.sync(() => enter(topic, key)),
            (latch) => Effect.sync(() => leave(topic, key, latch)),
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
        ring: (topic, keys) => Effect.sync(() => ringUnsafe(topic, keys)),
        ringUnsafe,
        bell,
        wait: (topic, maxMillis) => Effect.scoped(Effect.flatMap(bell(topic), (own) => own.wait(maxMillis))),
      })
    }),
  )
}
