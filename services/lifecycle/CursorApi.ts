/**
 * How a service follows a project's lifecycle: pages of signed events after a cursor, with a wait; a signed snapshot of
 * what they come to; and the acknowledgement of what the product committed (docs/lifecycle.md).
 *
 * Each call holds the service to its grant as it stands then: a revoked one is refused from its commit on. A service
 * that never had one is told that there is no such project.
 */
import { Clock, Context, Effect, Layer, Option } from "effect"
import type { SqlError } from "effect/sql"
import type * as Wire from "../../schemas/identity/ConsumptionBodies.ts"
import { decodeCursor, encodeCursor, type EventPosition } from "../../schemas/identity/Cursor.ts"
import type { NotFound } from "../../schemas/problems/HttpProblems.ts"
import * as Problems from "../../schemas/problems/IdentityProblems.ts"
import { WakeUps } from "../platform/messaging/WakeUps.ts"
import { Database } from "../platform/database/Database.ts"
import { mustBeOpen } from "../platform/database/Installation.ts"
import { consumerOf, isBelow, type Message, reading } from "./CursorReading.ts"
import { type Asking, grants } from "./GrantCheck.ts"
import { consumerMetrics, countsOf, measureAcknowledged, measureDelivered } from "./LatencyMetrics.ts"
import { lifecycleNetMillis, lifecycleTopic } from "./EventLog.ts"
import { snapshots } from "./Snapshots.ts"

type Refused = NotFound | Problems.RoleRequired | SqlError.SqlError
type Misplaced = Problems.CursorEpochChanged | Problems.CursorAhead

/** A snapshot's cursor may be where nothing is signed yet. */
const positionIn = (at: EventPosition | null, head: EventPosition): Effect.Effect<EventPosition, Misplaced> => {
  if (at === null || at.epoch !== head.epoch) return Effect.fail(new Problems.CursorEpochChanged())
  return at.position > head.position ? Effect.fail(new Problems.CursorAhead()) : Effect.succeed(at)
}

const positionOf = (cursor: string): EventPosition | null => Option.getOrNull(decodeCursor(cursor))

export class CursorApi extends Context.Service<CursorApi, {
  /** At most `limit` events after a cursor, waiting at most `waitMillis` for the first. */
  readonly events: (
    asking: Asking & { readonly after: string | undefined; readonly limit: number; readonly waitMillis: number },
  ) => Effect.Effect<Wire.LifecycleEvents, Refused | Misplaced | Problems.CursorExpired>
  /** A signed snapshot (compact JWS, `lifecycle-snapshot+jwt`): the state, or a manifest of its parts. */
  readonly snapshot: (asking: Asking) => Effect.Effect<string, Refused | Problems.Held>
  /** One part of a state, by its digest; CursorExpired where no snapshot of the last day names it. */
  readonly part: (
    asking: Asking & { readonly digest: string },
  ) => Effect.Effect<string, Refused | Problems.CursorExpired>
  readonly acknowledge: (
    asking: Asking & Wire.CursorAcknowledgement,
  ) => Effect.Effect<
    Wire.Acknowledged,
    Refused | Misplaced | Problems.CursorExpired | Problems.InstalledVersionMismatch | Problems.ChainMismatch
  >
}>()("bailiwick/services/lifecycle/CursorApi") {
  static readonly layer = (publicUrl: URL) =>
    Layer.effect(
      CursorApi,
      Effect.gen(function* () {
        const { sql } = yield* Database
        yield* consumerMetrics
        const { granted } = yield* grants
        const wakeUps = yield* WakeUps
        const read = yield* reading
        const snapshot = yield* snapshots(publicUrl)

        /**
         * Moves the consumer on to a position that it had not come to when it was read, and measures what it did not have:
         * each position once, however often it is asked for. A call that moved it meanwhile has measured it.
         */
        const delivered = Effect.fnUntraced(function* (
          asking: Asking,
          { epoch, position }: EventPosition,
          messages: ReadonlyArray<Message>,
          before: { readonly delivered: number; readonly had: number },
        ) {
          if (position <= before.delivered) return
          const now = yield* Clock.currentTimeMillis
          const fresh = messages.filter(({ at }) => Number(at) > before.had)
          const counts = countsOf(fresh.map(({ signed_at }) => now - signed_at.getTime()))
          const moved = yield* sql`
            insert into lifecycle_consumers as t (project_id, consumer, delivered_epoch, delivered_position, delivered_at,
              to_delivery)
            values (${asking.projectId}, ${consumerOf(asking)}, ${epoch}, ${position}, ${new Date(now)}, ${[...counts]})
            on conflict (project_id, consumer) do update
            set delivered_epoch = excluded.delivered_epoch, delivered_position = excluded.delivered_position,
              delivered_at = excluded.delivered_at,
              to_delivery = lifecycle_counted(t.to_delivery, excluded.to_delivery)
            where t.delivered_epoch is null
              or (excluded.delivered_epoch, excluded.delivered_position) > (t.delivered_epoch, t.delivered_position)
            returning 1`
          if (moved.length > 0) yield* measureDelivered("cursor", fresh, now)
        })

        const events: CursorApi["Service"]["events"] = Effect.fn("Consumption.events")(
          function* ({ after, limit, waitMillis, ...asking }) {
            const until = (yield* Clock.currentTimeMillis) + waitMillis
            const waiter = yield* wakeUps.waiter(lifecycleTopic, asking.projectId)
            const asked = after === undefined ? undefined : positionOf(after)
            for (;;) {
              const { before, head, messages } = yield* read.page(asking, asked, limit)
              // A later epoch begins from what was before it, which its events do not tell: only a snapshot does.
              if (asked === undefined && head.epoch > 1) return yield* new Problems.CursorExpired()
              const start = asked === undefined ? { epoch: head.epoch, position: 0 } : yield* positionIn(asked, head)
              const follows = start.position >= head.signed || Number(messages[0]?.at) === start.position + 1
              if (!follows || isBelow(start, head)) {
                return yield* new Problems.CursorExpired()
              }
              const left = until - (yield* Clock.currentTimeMillis)
              const last = messages.at(-1)
              if (last === undefined && left > 0) {
                yield* waiter.wait(Math.min(left, lifecycleNetMillis))
                continue
              }
              const at = last === undefined ? start : { epoch: head.epoch, position: Number(last.at) }
              if (last !== undefined) yield* delivered(asking, at, messages, before)
              return {
                items: messages.map(({ at, jti, set }) => ({ position: Number(at), jti, set })),
                cursor: encodeCursor(at),
                head: Math.max(head.signed, at.position),
                more: at.position < head.signed,
              }
            }
          },
          Effect.scoped,
        )

        const acknowledge: CursorApi["Service"]["acknowledge"] = Effect.fn("Consumption.acknowledge")(
          function* ({ chain_head, cursor, installed_version, ...asking }) {
            const known = yield* read.standing(asking, positionOf(cursor))
            const { head } = known
            const at = yield* positionIn(positionOf(cursor), head)
            if (known.installed_version !== installed_version) {
              return yield* new Problems.InstalledVersionMismatch({
                detail: known.installed_version === null
                  ? "The directory names no installed version of the project: it has to apply its project_link first."
                  : `The directory says that ${known.installed_version} is installed: acknowledge as that version, or have ` +
                    "the directory apply its project_link.",
              })
            }
            if (known.digest === null || isBelow(at, head)) return yield* new Problems.CursorExpired()
            if (known.digest !== chain_head) return yield* new Problems.ChainMismatch()
            const had = known.delivered_epoch === at.epoch && Number(known.delivered_position) >= at.position
            // The content of a first snapshot was not on its way to this consumer.
            const before = known.acknowledged_epoch === at.epoch
              ? Number(known.acknowledged_position)
              : had
              ? 0
              : at.position
            const fresh = before < at.position ? yield* read.between(asking.projectId, at, before) : []
            const now = yield* Clock.currentTimeMillis
            const took = fresh.length > 0 && had ? [now - known.delivered_at!.getTime()] : []
            const [row] = yield* sql<{ acknowledged_epoch: number; acknowledged_position: bigint }>`
              insert into lifecycle_consumers as t (project_id, consumer, acknowledged_epoch, acknowledged_position,
                acknowledged_at, installed_version, to_acknowledgement)
              values (${asking.projectId}, ${consumerOf(asking)}, ${at.epoch}, ${at.position}, ${new Date(now)},
                ${installed_version}, ${[...countsOf(took)]})
              on conflict (project_id, consumer) do update
              set acknowledged_at = case when t.acknowledged_epoch is null
                  or (excluded.acknowledged_epoch, excluded.acknowledged_position)
                    > (t.acknowledged_epoch, t.acknowledged_position) then excluded.acknowledged_at
                  else t.acknowledged_at end,
                acknowledged_position = case when t.acknowledged_epoch = excluded.acknowledged_epoch
                  then greatest(t.acknowledged_position, excluded.acknowledged_position)
                  else excluded.acknowledged_position end,
                acknowledged_epoch = excluded.acknowledged_epoch, installed_version = excluded.installed_version,
                to_acknowledgement = lifecycle_counted(t.to_acknowledgement, excluded.to_acknowledgement)
              returning acknowledged_epoch, acknowledged_position`
            yield* measureAcknowledged(fresh, now)
            const position = Number(row!.acknowledged_position)
            return {
              acknowledged_cursor: encodeCursor({ epoch: row!.acknowledged_epoch, position }),
              head: head.position,
              lag: head.position - position,
            }
          },
        )

        return CursorApi.of({
          events,
          acknowledge,
          snapshot: Effect.fn("Consumption.snapshot")(function* (asking: Asking) {
            yield* granted(asking, "snapshot.read")
            // It would tell what may have been revoked meanwhile.
            yield* mustBeOpen(sql)
            return yield* snapshot.make(asking.projectId)
          }),
          part: Effect.fn("Consumption.part")(function* ({ digest, ...asking }) {
            yield* granted(asking, "snapshot.read")
            return (yield* snapshot.part(asking.projectId, digest)) ?? (yield* new Problems.CursorExpired())
          }),
        })
      }),
    )
}
