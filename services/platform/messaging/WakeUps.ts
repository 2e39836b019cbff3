/**
 * Wake-up signals for waiters of a topic: at once in this process, by one coalesced core message (`bell.v1.<topic>`, at
 * most one per 5 ms and topic) in the others. A signal is a hint and may be lost: every waiter also looks by itself
 * after its `maxMillis`. This is not PostgreSQL's NOTIFY, which costs two thirds of the commits.
 *
 * A signal may name keys of the topic, such as projects: waiters for other keys do not wake. A waiter for the topic
 * alone wakes at every signal, and a signal without keys wakes all waiters. A message names at most a hundred keys; a
 * signal for more keys is sent without any.
 */
import { Context, Effect, Latch, Layer, Scope } from "effect"
import { Bus } from "./Bus.ts"
import { counted } from "../MapSizes.ts"

/** One waiter. A signal that comes while the waiter works is kept; several signals are one. */
export interface Waiter {
  /** Returns at the first signal since the last return, at the latest after `maxMillis`. */
  readonly wait: (maxMillis: number) => Effect.Effect<void>
}

/** Keys that one message names. */
const mostKeys = 100

export class WakeUps extends Context.Service<WakeUps, {
  /** Wakes the topic's waiters, in all processes. After a commit: `sql.afterCommit(wakeUps.notify(topic))`. */
  readonly notify: (topic: string, keys?: ReadonlyArray<string>) => Effect.Effect<void>
  /** The same from code outside Effect. */
  readonly notifyUnsafe: (topic: string, keys?: ReadonlyArray<string>) => void
  /** Makes a waiter, for loops that work between waits; with a key, only for signals that may be for the key. */
  readonly waiter: (topic: string, key?: string) => Effect.Effect<Waiter, never, Scope.Scope>
  /** Waits once, for signals from now on. */
  readonly wait: (topic: string, maxMillis: number) => Effect.Effect<void>
}>()("bailiwick/services/platform/messaging/WakeUps") {
  static readonly layer = Layer.effect(
    WakeUps,
    Effect.gen(function* () {
      const bus = yield* Bus
      const self = crypto.randomUUID()
      const waiting = new Map<string, Map<string | null, Set<Latch.Latch>>>()
      yield* counted("waiters", () => [...waiting.values()].reduce((sum, latchesByKey) => sum + latchesByKey.size, 0))
      const unsent = new Map<string, Set<string> | null>()
      const sending = Latch.makeUnsafe(false)

      const open = (latches: Set<Latch.Latch> | undefined) => latches?.forEach((latch) => latch.openUnsafe())

      const wake = (topic: string, keys: ReadonlyArray<string>) => {
        const latchesByKey = waiting.get(topic)
        if (latchesByKey === undefined) return
        if (keys.length === 0) return latchesByKey.forEach(open)
        open(latchesByKey.get(null))
        for (const key of keys) open(latchesByKey.get(key))
      }

      const notifyUnsafe = (topic: string, keys: ReadonlyArray<string> = []) => {
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
        const signalled = [...unsent]
        unsent.clear()
        for (const [topic, keys] of signalled) {
          yield* bus.publishCore(`bell.v1.${topic}`, [self, ...(keys ?? [])].join("\n"))
        }
        yield* Effect.sleep("5 millis")
      }).pipe(Effect.forever, Effect.forkScoped)

      const enter = (topic: string, key: string | null) => {
        const latch = Latch.makeUnsafe(false)
        const latchesByKey = waiting.get(topic) ?? new Map<string | null, Set<Latch.Latch>>()
        waiting.set(topic, latchesByKey)
        latchesByKey.set(key, (latchesByKey.get(key) ?? new Set()).add(latch))
        return latch
      }

      const leave = (topic: string, key: string | null, latch: Latch.Latch) => {
        const latchesByKey = waiting.get(topic)
        const latches = latchesByKey?.get(key)
        latches?.delete(latch)
        if (latches?.size === 0) latchesByKey?.delete(key)
      }

      const waiter = (topic: string, key: string | null = null) =>
        Effect.map(
          Effect.acquireRelease(
            Effect.sync(() => enter(topic, key)),
            (latch) => Effect.sync(() => leave(topic, key, latch)),
          ),
          (latch): Waiter => ({
            wait: (maxMillis) =>
              latch.await.pipe(
                Effect.timeoutOption(maxMillis),
                Effect.andThen(Effect.sync(() => void latch.closeUnsafe())),
              ),
          }),
        )

      return WakeUps.of({
        notify: (topic, keys) => Effect.sync(() => notifyUnsafe(topic, keys)),
        notifyUnsafe,
        waiter,
        wait: (topic, maxMillis) => Effect.scoped(Effect.flatMap(waiter(topic), (own) => own.wait(maxMillis))),
      })
    }),
  )
}
