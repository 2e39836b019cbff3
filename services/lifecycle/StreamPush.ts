/**
 * Pushes what streams have for their receivers (RFC 8935, as Shared Signals Framework 1.0 profiles it). A stream is
 * claimed (Leases) by one process at a time, many side by side; whoever froze sends nothing once its lease is over.
 *
 * A stream is due where it is not failing, or its time has come, and there is something for it: signed events beyond
 * where it was looked at, subjects that are to be tried again, messages of its own. That is asked of the rows themselves
 * by bell, every second, and whenever a claim was given back, so no wake-up can be lost.
 */
import { Clock, Context, Effect, Latch, Layer } from "effect"
import type { SqlError } from "effect/sql"
import { type Bell, Bells } from "../platform/Bells.ts"
import { Database } from "../platform/Database.ts"
import { claimDue, freeExpired, type LeasedTable } from "../platform/Leases.ts"
import { lifecycleTopic } from "./Positions.ts"
import type { Claimed } from "./StreamDelivery/Course.ts"
import { type Opened, openings } from "./StreamDelivery/Opening.ts"
import { type Patience, patience } from "./StreamDelivery/Patience.ts"
import { runs } from "./StreamDelivery/Run.ts"

export type { Patience } from "./StreamDelivery/Patience.ts"

const table: LeasedTable = { table: "lifecycle_streams", key: "id", keyType: "uuid" }

const claimedAtOnce = 32
const lingerMillis = 3

export class StreamPush extends Context.Service<StreamPush, {
  /** Claims streams that are due and begins to serve them; gives whether there may be more. */
  readonly turn: Effect.Effect<boolean, SqlError.SqlError>
  /** Rings where something may have become due: events, signatures, changes of streams, and claims given back. */
  readonly bell: Bell
  /** Frees claims whose lease ended. */
  readonly free: Effect.Effect<void, SqlError.SqlError>
}>()("bailiwick/services/lifecycle/StreamPush") {
  /** `timeoutMillis` is that of Outbound. */
  static readonly layer = (publicUrl: URL, options: Partial<Patience> = {}) =>
    Layer.effect(
      StreamPush,
      Effect.gen(function* () {
        const { sql } = yield* Database
        const bells = yield* Bells
        const scope = yield* Effect.scope
        const limits: Patience = { ...patience, ...options }
        const open = yield* openings
        const run = yield* runs(publicUrl, limits)
        const told = yield* bells.bell(lifecycleTopic)
        const returned = Latch.makeUnsafe(false)
        const running = new Set<string>()

        const due = (now: number) =>
          sql`and t.delivery = 'push' and (
            exists (
              select from lifecycle_stream_messages m
              where m.stream_id = t.id and m.delivered_at is null and (m.after_epoch is null or t.status = 'enabled'
                and (m.after_epoch, m.after_position) <= (t.epoch, coalesce(t.reached, t.position))))
            or t.status = 'enabled' and (
              exists (
                select from lifecycle_signed s where s.project_id = t.project_id
                  and (s.epoch, s.position) > (t.epoch, coalesce(t.reached, t.position)))
              or exists (
                select from lifecycle_stream_failing f
                where f.stream_id = t.id and f.epoch = t.epoch and f.not_before <= ${new Date(now)})))`

        const begin = (claimed: Claimed, opened: Opened | null) => {
          running.add(claimed.id)
          return run(claimed, opened).pipe(
            Effect.catchCause((cause) => Effect.logWarning("a stream could not be served", cause)),
            Effect.ensuring(Effect.sync(() => {
              running.delete(claimed.id)
              returned.openUnsafe()
            })),
            Effect.forkIn(scope),
          )
        }

        const turn = Effect.gen(function* () {
          const limit = Math.min(claimedAtOnce, limits.streamsAtOnce - running.size)
          if (limit <= 0) return false
          const claimed = yield* claimDue<Claimed>(sql, table, {
            ...{ leaseMillis: limits.leaseMillis, limit },
            also: due(yield* Clock.currentTimeMillis),
          })
          const [first] = claimed
          if (first === undefined) return false
          // Whoever could not be read here reads for itself, or gives its claim back.
          const opened = yield* open(first.claim, claimed.map(({ id }) => id)).pipe(
            Effect.catch(() => Effect.succeed(new Map<string, Opened>())),
          )
          yield* Effect.forEach(claimed, (one) => begin(one, opened.get(one.id) ?? null), { discard: true })
          // What comes due meanwhile is claimed together.
          yield* Effect.sleep(lingerMillis)
          return claimed.length === limit
        })

        return StreamPush.of({
          turn,
          bell: {
            wait: (maxMillis) =>
              Effect.andThen(
                Effect.raceFirst(told.wait(maxMillis), returned.await),
                Effect.sync(() => void returned.closeUnsafe()),
              ),
          },
          free: Effect.asVoid(freeExpired(sql, table)),
        })
      }),
    )
}
