/**
 * The facts from which a consumer's question is answered: its grant now, the project's head and the events after a
 * position, in one statement, so that all of them are of one moment.
 */
import { Clock, Effect } from "effect"
import type { ProjectId } from "../../schemas/BrandedIds.ts"
import type { EventPosition } from "../../schemas/identity/Cursor.ts"
import type { Capability } from "../../schemas/identity/ServiceGrant.ts"
import { genesis } from "../platform/security/CanonicalJson.ts"
import { Database } from "../platform/database/Database.ts"
import { type Asking, grants } from "./GrantCheck.ts"
import { minimumCursorOf } from "./Keys/MinimumCursor.ts"
import type { Travelled } from "./LatencyMetrics.ts"

/**
 * A project's last position, and the last one that is signed: consumers read signed events only. This consumer gets no
 * event before `minimumCursor`: those were signed by a key that it no longer believes.
 */
export interface Head extends EventPosition {
  readonly signed: number
  readonly minimumCursor: EventPosition | null
}

interface Had {
  readonly acknowledged_epoch: number | null
  readonly acknowledged_position: bigint | null
  readonly delivered_epoch: number | null
  readonly delivered_position: bigint | null
}

/** Up to where a consumer was delivered an epoch, and has it, be it from a snapshot. */
const hadOf = (row: Had, epoch: number) => {
  const delivered = row.delivered_epoch === epoch ? Number(row.delivered_position) : 0
  const acknowledged = row.acknowledged_epoch === epoch ? Number(row.acknowledged_position) : 0
  return { delivered, had: Math.max(delivered, acknowledged) }
}

export interface Message extends Travelled {
  readonly at: bigint
  readonly set: string
}

interface HeadRow {
  readonly stands: boolean
  readonly epoch: number
  readonly position: bigint
  readonly signed: bigint
  readonly floor_epoch: number | null
  readonly floor_position: bigint | null
}

interface StandingRow extends HeadRow, Had {
  readonly installed_version: string | null
  /** The chain's digest at the position; null where that is kept no longer. */
  readonly digest: string | null
  readonly delivered_at: Date | null
}

/** A position that no project has, for a read that asks only for the permission. */
const nowhere: EventPosition = { epoch: -1, position: 0 }

/** Fresh acknowledgements are measured up to so many at once. */
const measured = 1_000

const headOf = ({ epoch, floor_epoch, floor_position, position, signed }: HeadRow): Head => ({
  epoch,
  position: Number(position),
  signed: Number(signed),
  minimumCursor: floor_epoch === null ? null : { epoch: floor_epoch, position: Number(floor_position) },
})

export const consumerOf = ({ clientId, issuer }: Asking): string => `${issuer} ${clientId}`

/** Whether a consumer must take a snapshot before it goes on from a position. */
export const isBelow = ({ epoch, position }: EventPosition, { minimumCursor }: Head): boolean =>
  minimumCursor !== null &&
  (epoch < minimumCursor.epoch || epoch === minimumCursor.epoch && position < minimumCursor.position)

export const reading = Effect.gen(function* () {
  const { sql } = yield* Database
  const { admitted, asked } = yield* grants

  const headColumns = sql.literal(`g.stands, f.floor_epoch, f.floor_position,
    coalesce(h.epoch, i.epoch) as epoch, coalesce(h.position, 0) as position, coalesce(h.signed, 0) as signed`)

  /** `g`: the grant; `i`: the installation; `h`: the project's head; `f`: the minimum cursor; `c`: the consumer. */
  const sources = (asking: Asking, capability: Capability, now: Date) =>
    sql`(${asked(asking, capability, now)}) g cross join installation i
      left join (
        select h.epoch, h.position, h.digest, coalesce(s.position, 0) as signed from lifecycle_heads h
        left join lifecycle_signed s on s.project_id = h.project_id and s.epoch = h.epoch
        where h.project_id = ${asking.projectId}
      ) h on true
      left join (${minimumCursorOf(sql, asking.projectId, consumerOf(asking))}) f on true
      left join lifecycle_consumers c on c.project_id = ${asking.projectId} and c.consumer = ${consumerOf(asking)}`

  const hadColumns = sql.literal(
    "c.acknowledged_epoch, c.acknowledged_position, c.delivered_epoch, c.delivered_position",
  )

  /** The head, what the consumer has, and at most `limit` messages after `after`: from the beginning of the epoch where that is undefined. */
  const page = Effect.fnUntraced(function* (asking: Asking, after: EventPosition | null | undefined, limit: number) {
    const now = new Date(yield* Clock.currentTimeMillis)
    const { epoch, position } = after === undefined ? { epoch: 0, position: 0 } : after ?? nowhere
    const rows = yield* sql<HeadRow & Had & { readonly [K in keyof Message]: Message[K] | null }>`
      select ${headColumns}, ${hadColumns}, m.*
      from ${sources(asking, "events.read", now)}
      left join lateral (
        select position as at, event_id::text as jti, message as set, decided_at, signed_at, traceparent
        from lifecycle_messages
        where g.stands and project_id = ${asking.projectId} and epoch = h.epoch and ${epoch}::int in (0, h.epoch)
          and position > ${position} and position <= h.signed
        order by position limit ${limit}
      ) m on true
      order by m.at`
    const first = yield* admitted(rows)
    const head = headOf(first)
    return {
      head,
      before: hadOf(first, head.epoch),
      messages: rows.filter((row): row is typeof row & Message => row.at !== null),
    }
  })

  /** The facts against which an acknowledgement of a position is checked. */
  const standing = Effect.fnUntraced(function* (asking: Asking, at: EventPosition | null) {
    const now = new Date(yield* Clock.currentTimeMillis)
    const { epoch, position } = at ?? nowhere
    const row = yield* admitted(
      yield* sql<StandingRow>`
        select ${headColumns}, p.installed_version,
          case when coalesce(h.epoch, i.epoch) = ${epoch} and coalesce(h.position, 0) = ${position}
            then coalesce(h.digest, ${genesis}) else next.prev_digest end as digest,
          ${hadColumns}, c.delivered_at
        from ${sources(asking, "cursor.acknowledge", now)}
        left join projects p on p.id = ${asking.projectId}
        left join lifecycle_events next on next.project_id = p.id and next.epoch = ${epoch}
          and next.position = ${position + 1}`,
    )
    return { ...row, head: headOf(row) }
  })

  /** The messages after one position up to another, the newest first. */
  const between = (projectId: ProjectId, { epoch, position }: EventPosition, after: number) =>
    sql<Travelled>`
      select event_id::text as jti, decided_at, signed_at, traceparent from lifecycle_messages
      where project_id = ${projectId} and epoch = ${epoch} and position > ${after} and position <= ${position}
      order by position desc limit ${measured}`

  return { between, page, standing }
})
