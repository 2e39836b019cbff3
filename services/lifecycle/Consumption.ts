/**
 * How a service follows a project's lifecycle: pages of signed events after a cursor, with a wait; a signed snapshot of
 * what they come to; and the acknowledgement of what the product committed (DECISIONS-identity 1.10).
 *
 * Each call holds the service to its grant as it stands then: a revoked one is refused from its commit on. Whoever never
 * had one is told that there is no such project.
 */
import { Clock, Context, Effect, Layer, Option } from "effect"
import type { SqlError } from "effect/sql"
import type * as Wire from "../../schemas/identity/Consumption.ts"
import { decodeCursor, encodeCursor, type Place } from "../../schemas/identity/Cursor.ts"
import type { NotFound } from "../../schemas/problems/Floor.ts"
import * as Problems from "../../schemas/problems/Identity.ts"
import { Bells } from "../platform/Bells.ts"
import { genesis } from "../platform/Canonical.ts"
import { Database } from "../platform/Database.ts"
import { type Asking, grants } from "./Granted.ts"
import { lifecycleTopic } from "./Positions.ts"
import { snapshots } from "./Snapshots.ts"

type Refused = NotFound | Problems.RoleRequired | SqlError.SqlError
type Misplaced = Problems.CursorEpochChanged | Problems.CursorAhead

const consumerOf = ({ clientId, issuer }: Asking): string => `${issuer} ${clientId}`

export class Consumption extends Context.Service<Consumption, {
  /** At most `limit` events after a cursor, waiting at most `waitMillis` for the first. */
  readonly events: (
    asking: Asking & { readonly after: string | undefined; readonly limit: number; readonly waitMillis: number },
  ) => Effect.Effect<Wire.LifecycleEvents, Refused | Misplaced | Problems.CursorExpired>
  /** A signed snapshot (compact JWS, `lifecycle-snapshot+jwt`). */
  readonly snapshot: (asking: Asking) => Effect.Effect<string, Refused>
  readonly acknowledge: (
    asking: Asking & Wire.CursorAcknowledgement,
  ) => Effect.Effect<
    Wire.Acknowledged,
    Refused | Misplaced | Problems.InstalledVersionMismatch | Problems.ChainMismatch
  >
}>()("bailiwick/services/lifecycle/Consumption") {
  static readonly layer = (publicUrl: URL) =>
    Layer.effect(
      Consumption,
      Effect.gen(function* () {
        const { sql } = yield* Database
        const { granted } = yield* grants
        const bells = yield* Bells
        const snapshot = yield* snapshots(publicUrl)

        /** What was told, and up to where it is signed: what is not signed yet is not there to be read yet. */
        const headOf = (projectId: string) =>
          Effect.map(
            sql<{ epoch: number; position: bigint; signed: bigint }>`
              select h.epoch, h.position, coalesce(s.position, 0) as signed from lifecycle_heads h
              left join lifecycle_signed s on s.project_id = h.project_id and s.epoch = h.epoch
              where h.project_id = ${projectId}`,
            ([row]): Place & { readonly signed: number } =>
              row === undefined
                ? { epoch: 1, position: 0, signed: 0 }
                : { epoch: row.epoch, position: Number(row.position), signed: Number(row.signed) },
          )

        /** A snapshot's cursor may be where nothing is signed yet. */
        const placeOf = (cursor: string, head: Place): Effect.Effect<Place, Misplaced> => {
          const place = decodeCursor(cursor)
          if (Option.isNone(place) || place.value.epoch !== head.epoch) {
            return Effect.fail(new Problems.CursorEpochChanged())
          }
          return place.value.position > head.position
            ? Effect.fail(new Problems.CursorAhead())
            : Effect.succeed(place.value)
        }

        const page = (projectId: string, { epoch, position }: Place, limit: number) =>
          sql<{ position: bigint; jti: string; set: string }>`
            select position, event_id::text as jti, message as set from lifecycle_messages
            where project_id = ${projectId} and epoch = ${epoch} and position > ${position}
            order by position limit ${limit}`

        const delivered = Effect.fnUntraced(function* (asking: Asking, { epoch, position }: Place) {
          const now = new Date(yield* Clock.currentTimeMillis)
          yield* sql`
            insert into lifecycle_consumers as t (project_id, consumer, delivered_epoch, delivered_position, delivered_at)
            values (${asking.projectId}, ${consumerOf(asking)}, ${epoch}, ${position}, ${now})
            on conflict (project_id, consumer) do update
            set delivered_epoch = excluded.delivered_epoch, delivered_position = excluded.delivered_position,
              delivered_at = excluded.delivered_at
            where t.delivered_epoch is null
              or (excluded.delivered_epoch, excluded.delivered_position) > (t.delivered_epoch, t.delivered_position)`
        })

        const events: Consumption["Service"]["events"] = Effect.fn("Consumption.events")(
          function* ({ after, limit, waitMillis, ...asking }) {
            const until = (yield* Clock.currentTimeMillis) + waitMillis
            const bell = yield* bells.bell(lifecycleTopic)
            for (;;) {
              yield* granted(asking, "events.read")
              const head = yield* headOf(asking.projectId)
              const start = after === undefined ? { epoch: head.epoch, position: 0 } : yield* placeOf(after, head)
              const rows = start.position < head.signed ? yield* page(asking.projectId, start, limit) : []
              if (start.position < head.signed && Number(rows[0]?.position) !== start.position + 1) {
                return yield* new Problems.CursorExpired()
              }
              const left = until - (yield* Clock.currentTimeMillis)
              const last = rows.at(-1)
              if (last === undefined && left > 0) {
                yield* bell.wait(Math.min(left, 1_000))
                continue
              }
              const place = last === undefined ? start : { epoch: head.epoch, position: Number(last.position) }
              if (last !== undefined) yield* delivered(asking, place)
              return {
                items: rows.map(({ position, ...item }) => ({ ...item, position: Number(position) })),
                cursor: encodeCursor(place),
                head: Math.max(head.signed, place.position),
                more: place.position < head.signed,
              }
            }
          },
          Effect.scoped,
        )

        const acknowledge: Consumption["Service"]["acknowledge"] = Effect.fn("Consumption.acknowledge")(
          function* ({ chain_head, cursor, installed_version, ...asking }) {
            yield* granted(asking, "cursor.acknowledge")
            const head = yield* headOf(asking.projectId)
            const place = yield* placeOf(cursor, head)
            const [known] = yield* sql<{ installed_version: string | null; digest: string | null }>`
              select p.installed_version, e.digest from projects p
              left join lifecycle_events e on e.project_id = p.id and e.epoch = ${place.epoch}
                and e.position = ${place.position}
              where p.id = ${asking.projectId}`
            if (known?.installed_version !== installed_version) return yield* new Problems.InstalledVersionMismatch()
            if ((place.position === 0 ? genesis : known.digest) !== chain_head) {
              return yield* new Problems.ChainMismatch()
            }
            const now = new Date(yield* Clock.currentTimeMillis)
            const [row] = yield* sql<{ acknowledged_epoch: number; acknowledged_position: bigint }>`
              insert into lifecycle_consumers as t (project_id, consumer, acknowledged_epoch, acknowledged_position,
                acknowledged_at, installed_version)
              values (${asking.projectId}, ${consumerOf(asking)}, ${place.epoch}, ${place.position}, ${now},
                ${installed_version})
              on conflict (project_id, consumer) do update
              set acknowledged_at = case when t.acknowledged_epoch is null
                  or (excluded.acknowledged_epoch, excluded.acknowledged_position)
                    > (t.acknowledged_epoch, t.acknowledged_position) then excluded.acknowledged_at
                  else t.acknowledged_at end,
                acknowledged_position = case when t.acknowledged_epoch = excluded.acknowledged_epoch
                  then greatest(t.acknowledged_position, excluded.acknowledged_position)
                  else excluded.acknowledged_position end,
                acknowledged_epoch = excluded.acknowledged_epoch, installed_version = excluded.installed_version
              returning acknowledged_epoch, acknowledged_position`
            const position = Number(row!.acknowledged_position)
            return {
              acknowledged_cursor: encodeCursor({ epoch: row!.acknowledged_epoch, position }),
              head: head.position,
              lag: head.position - position,
            }
          },
        )

        return Consumption.of({
          events,
          acknowledge,
          snapshot: Effect.fn("Consumption.snapshot")(function* (asking: Asking) {
            yield* granted(asking, "snapshot.read")
            return yield* snapshot(asking.projectId)
          }),
        })
      }),
    )
}
