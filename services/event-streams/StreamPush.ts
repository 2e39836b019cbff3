/**
 * Push delivery of streams (RFC 8935, as Shared Signals Framework 1.0 profiles it). One process at a time claims a
 * stream (Leases), many streams side by side; a process that froze sends nothing once its lease is over.
 *
 * A stream is due where it is not failing, or its retry is due, and it has something to push: signed events beyond the
 * position that it reached, subjects to be tried again, or own messages. The rows themselves are asked, on a wake-up
 * signal, every second, and whenever a claim was released or has nothing more, so no wake-up can be lost. A claim
 * outlasts its last message by a moment, so that a stream with a message now and then is not claimed for each.
 */
import { Clock, Context, Deferred, Effect, Latch, Layer, Scope } from "effect"
import type { SqlError } from "effect/sql"
import { type Waiter, WakeUps } from "../platform/messaging/WakeUps.ts"
import { Database } from "../platform/database/Database.ts"
import { claimDue, claimed, freeExpired, type LeasedTable, release } from "../platform/database/Leases.ts"
import { lifecycleTopic } from "../lifecycle/EventLog.ts"
import type { Claimed } from "./StreamDelivery/PushState.ts"
import { type Held, type Opened, openings, somethingFor } from "./StreamDelivery/PrefetchStreams.ts"
import { patience, type RetryPolicy } from "./StreamDelivery/RetryPolicy.ts"
import { runs } from "./StreamDelivery/PushSession.ts"

export type { RetryPolicy } from "./StreamDelivery/RetryPolicy.ts"

const table: LeasedTable = { table: "lifecycle_streams", key: "id", keyType: "uuid" }

const claimedAtOnce = 32
const lingerMillis = 3
const lingerAtMost = 100

export class StreamPush extends Context.Service<StreamPush, {
  /** Claims streams that are due and begins to serve them; returns whether there may be more. */
  readonly turn: Effect.Effect<boolean, SqlError.SqlError>
  /** Wakes when a stream may have become due: events, signatures, changes of streams, and released claims. */
  readonly waiter: Waiter
  /** Frees claims whose lease ended. */
  readonly free: Effect.Effect<void, SqlError.SqlError>
}>()("bailiwick/services/event-streams/StreamPush") {
  static readonly layer = (publicUrl: URL, options: Partial<RetryPolicy> = {}) =>
    Layer.effect(
      StreamPush,
      Effect.gen(function* () {
        const { sql } = yield* Database
        const wakeUps = yield* WakeUps
        const limits: RetryPolicy = { ...patience, ...options }
        const open = yield* openings
        const run = yield* runs(publicUrl, limits)
        // A stop ends all runs in parallel, and before the batcher by which they settle.
        const scope = yield* Scope.fork(yield* Effect.scope, "parallel")
        const lifecycleWaiter = yield* wakeUps.waiter(lifecycleTopic)
        const look = Latch.makeUnsafe(false)
        const running = new Set<Claimed>()
        const warm = new Map<string, Held & { readonly next: Deferred.Deferred<Opened | null> }>()

        /** Waits, with the claim, for more; null where nothing came. */
        const waiting = (held: Held) =>
          Effect.flatMap(Deferred.make<Opened | null>(), (next) => {
            warm.set(held.id, { ...held, next })
            // Something may have come just before this waiter was registered.
            look.openUnsafe()
            return Deferred.await(next).pipe(
              Effect.timeoutOrElse({ duration: limits.warmMillis, orElse: () => Effect.succeed(null) }),
              Effect.ensuring(Effect.sync(() => {
                if (warm.get(held.id)?.next === next) warm.delete(held.id)
              })),
            )
          })

        const giveBack = ({ claim, id }: Held) => release(sql, table, claim, { keys: [id] })

        const begin = (stream: Claimed, opened: Opened | null) => {
          running.add(stream)
          return claimed({
            claim: Effect.succeed(stream),
            work: () => run(stream, opened, waiting(stream)),
            giveBack,
          }).pipe(
            Effect.catchCause((cause) => Effect.logWarning("a stream could not be served", cause)),
            Effect.ensuring(Effect.sync(() => {
              running.delete(stream)
              look.openUnsafe()
            })),
            // Starts at once: a stop before the fiber's first step would leave the claim held.
            Effect.forkIn(scope, { startImmediately: true }),
          )
        }

        const goOn = Effect.gen(function* () {
          if (warm.size === 0) return
          for (const [id, opened] of yield* open([...warm.values()], true)) {
            const waiter = warm.get(id)
            if (waiter !== undefined) yield* Deferred.succeed(waiter.next, opened)
          }
        })

        const claim = Effect.gen(function* () {
          const limit = Math.min(claimedAtOnce, limits.streamsAtOnce - running.size)
          if (limit <= 0) {
            // Claims that only wait for more make room.
            for (const { next } of warm.values()) yield* Deferred.succeed(next, null)
            return false
          }
          const now = new Date(yield* Clock.currentTimeMillis)
          return yield* claimed({
            claim: claimDue<Claimed>(sql, table, {
              leaseMillis: limits.leaseMillis,
              limit,
              also: sql`and t.delivery = 'push' and ${somethingFor(sql, now)}`,
            }),
            work: Effect.fnUntraced(function* (streams) {
              if (streams.length === 0) return false
              // A stream that could not be read here is read by its own run, or its claim is released.
              const opened = yield* open(streams, false).pipe(
                Effect.catch(() => Effect.succeed(new Map<string, Opened>())),
              )
              yield* Effect.uninterruptible(
                Effect.forEach(streams, (one) => begin(one, opened.get(one.id) ?? null), { discard: true }),
              )
              return streams.length === limit
            }),
            giveBack: (streams) =>
              Effect.forEach(streams.filter((one) => !running.has(one)), giveBack, { concurrency: 8, discard: true }),
          })
        })

        const turn = Effect.gen(function* () {
          const began = yield* Clock.currentTimeMillis
          yield* goOn
          const more = yield* claim
          const took = (yield* Clock.currentTimeMillis) - began
          // Streams that come due during this pause are claimed together. The pause grows with the duration of the last
          // turn, so that many streams are not polled all the time.
          yield* Effect.sleep(Math.min(lingerAtMost, Math.max(lingerMillis, took)))
          return more
        })

        return StreamPush.of({
          turn,
          waiter: {
            wait: (maxMillis) =>
              Effect.andThen(
                Effect.raceFirst(lifecycleWaiter.wait(maxMillis), look.await),
                Effect.sync(() => void look.closeUnsafe()),
              ),
          },
          free: Effect.asVoid(freeExpired(sql, table)),
        })
      }),
    )
}
