/**
 * The delivery status of an event, as read now: whether a consumer of its project has it, and whether a consumer has
 * acknowledged it after committing it. The two are kept apart from each other and from the decision.
 */
import type { PgClient } from "@effect/sql-pg"
import type { ProjectId } from "../../schemas/BrandedIds.ts"
import { encodeCursor } from "../../schemas/identity/Cursor.ts"
import type { LifecycleEventKind } from "../../schemas/identity/LifecycleEventKinds.ts"
import { type Acknowledgement, type Delivery, undelivered } from "../../schemas/identity/LifecycleBodies.ts"

/**
 * Kinds of events whose delivery the API reports. A stream that leaves out some subjects or events has no position that
 * proves a delivery, so each event of these kinds that it delivered is recorded.
 */
export const reported: ReadonlyArray<LifecycleEventKind> = [
  "access-review-approved",
  "access-review-revoked",
  "service-grant-approved",
  "service-grant-revoked",
]

/** The pushes of an event that failed, over all streams; the time as PostgreSQL's JSON has it. */
export interface Attempted {
  readonly attempts: number
  readonly last_attempt_at: string
  /** Some stream's receiver has not taken the event yet. */
  readonly untaken: boolean
  /** Some stream's receiver has not taken the event yet, and the stream still owes it. */
  readonly failing: boolean
  /** A receiver whose answer did not arrive may have the event. */
  readonly unanswered: boolean
}

/**
 * SQL of the attempts `t` that `where` selects, a row for each event. The stream owes nothing to a receiver that has
 * the event by another way, that disabled its stream or that lost its grant.
 */
export const attemptsOf = (where: string) =>
  `select t.project_id, t.epoch, t.position, sum(t.attempts)::int as attempts, max(t.last_attempt_at) as last_attempt_at,
    bool_or(t.outcome <> 'taken') as untaken, bool_or(t.outcome = 'ambiguous') as unanswered,
    bool_or(t.outcome <> 'taken' and coalesce(s.status <> 'disabled', false)
      and s.status_reason is distinct from 'grant_not_standing'
      and coalesce((c.delivered_epoch, c.delivered_position) < (t.epoch, t.position), true)) as failing
  from lifecycle_attempts t left join lifecycle_streams s on s.id = t.stream_id
  left join lifecycle_consumers c on c.project_id = t.project_id and c.consumer = t.consumer
  where ${where} group by t.project_id, t.epoch, t.position`

/** The columns of `deliveryColumns` in a row. */
export interface DeliveryRow {
  /** The event's id; null where no event was appended yet. */
  readonly queued_event_id: string | null
  readonly queued_at: Date | null
  readonly delivered_at: Date | null
  /** Null where every push was taken. */
  readonly attempted: Attempted | null
  readonly acknowledged_at: Date | null
  readonly acknowledged_epoch: number | null
  readonly acknowledged_position: bigint | null
  readonly acknowledged_version: string | null
}

/**
 * SQL of lateral joins over the event of alias `e` (epoch, position, project_id; may be absent), and of the columns
 * that `deliveryOf` and `acknowledgementOf` read.
 */
export const deliveryColumns = (sql: PgClient.PgClient) => ({
  columns: sql.literal(`e.id::text as queued_event_id, e.created_at as queued_at, had.delivered_at,
    to_jsonb(tried) as attempted, done.acknowledged_at,
    done.acknowledged_epoch, done.acknowledged_position, done.installed_version as acknowledged_version`),
  joins: sql.literal(`left join lateral (
      select min(at) as delivered_at from (
        select c.delivered_at as at from lifecycle_consumers c
        where c.project_id = e.project_id and (c.delivered_epoch, c.delivered_position) >= (e.epoch, e.position)
        union all
        select g.given_at from lifecycle_given g
        where (g.project_id, g.epoch, g.position) = (e.project_id, e.epoch, e.position)
      ) taken
    ) had on true
    left join lateral (
      ${attemptsOf("(t.project_id, t.epoch, t.position) = (e.project_id, e.epoch, e.position)")}
    ) tried on true
    left join lateral (
      select c.acknowledged_at, c.acknowledged_epoch, c.acknowledged_position, c.installed_version
      from lifecycle_consumers c
      where c.project_id = e.project_id and (c.acknowledged_epoch, c.acknowledged_position) >= (e.epoch, e.position)
      order by c.acknowledged_at limit 1
    ) done on true`),
})

/** An event's position in its project's history. */
export interface Stood {
  readonly project_id: ProjectId
  readonly epoch: number
  readonly position: number
}

/** How far a consumer of a project has come; times as PostgreSQL's JSON has them. */
export interface Consumer {
  readonly project_id: ProjectId
  readonly delivered_epoch: number | null
  readonly delivered_position: number | null
  readonly delivered_at: string | null
  readonly acknowledged_epoch: number | null
  readonly acknowledged_position: number | null
  readonly acknowledged_at: string | null
  readonly installed_version: string | null
}

/** An event that was delivered by a stream which leaves something out; the time as PostgreSQL's JSON has it. */
export interface Given extends Stood {
  readonly given_at: string
}

interface Reached {
  readonly epoch: number
  readonly position: number
  readonly at: Date
  readonly installedVersion: string | null
}

const reachedBy = (
  epoch: number | null,
  position: number | null,
  at: string | null,
  installedVersion: string | null,
): ReadonlyArray<Reached> =>
  epoch === null || position === null || at === null ? [] : [{ epoch, position, at: new Date(at), installedVersion }]

const earliestFirst = (one: Reached, other: Reached) => one.at.getTime() - other.at.getTime()

/**
 * Answers what `deliveryColumns` asks, for many events of few projects at once: the consumers are read once and searched in
 * memory.
 */
export const deliveriesAmong = (
  consumers: ReadonlyArray<Consumer>,
  given: ReadonlyArray<Given>,
  attempted: ReadonlyArray<Attempted & Stood>,
) => {
  const positionKey = ({ epoch, position, project_id }: Stood) => `${epoch} ${position} ${project_id}`
  const alone = new Map(given.map((one) => [positionKey(one), new Date(one.given_at)]))
  const tried = new Map(attempted.map((one) => [positionKey(one), one]))
  const of = (reached: (consumer: Consumer) => ReadonlyArray<Reached>) => {
    const projects = new Map<string, Array<Reached>>()
    for (const consumer of consumers) {
      const known = projects.get(consumer.project_id)
      if (known === undefined) projects.set(consumer.project_id, [...reached(consumer)])
      else known.push(...reached(consumer))
    }
    for (const all of projects.values()) all.sort(earliestFirst)
    /** The first consumer that reached the event's position. */
    return ({ epoch, position, project_id }: Stood): Reached | undefined =>
      projects.get(project_id)?.find((one) => one.epoch > epoch || one.epoch === epoch && one.position >= position)
  }
  const delivered = of((c) => reachedBy(c.delivered_epoch, c.delivered_position, c.delivered_at, null))
  return {
    /** When the first consumer had the event; null where no consumer has it. */
    delivered: (event: Stood): Date | null => {
      const [all, one] = [delivered(event)?.at, alone.get(positionKey(event))]
      return all === undefined ? one ?? null : one === undefined || all < one ? all : one
    },
    attempted: (event: Stood): Attempted | null => tried.get(positionKey(event)) ?? null,
    acknowledged: of((c) =>
      reachedBy(c.acknowledged_epoch, c.acknowledged_position, c.acknowledged_at, c.installed_version)
    ),
  }
}

/** The event counts as failed while a stream owes it to a receiver, even where another receiver has it. */
const stateOf = (delivered: boolean, attempted: Attempted | null): Delivery["state"] => {
  if (attempted === null || !attempted.untaken || delivered && !attempted.failing) {
    return delivered ? "delivered" : "queued"
  }
  return attempted.unanswered ? "ambiguous" : "failed"
}

export const deliveryOf = ({ attempted, delivered_at, queued_at, queued_event_id }: DeliveryRow): Delivery => {
  if (queued_event_id === null) return undelivered
  const times = [delivered_at?.getTime() ?? [], attempted === null ? [] : Date.parse(attempted.last_attempt_at)].flat()
  return {
    state: stateOf(delivered_at !== null, attempted),
    event_id: queued_event_id,
    queued_at: queued_at?.toISOString() ?? null,
    last_attempt_at: times.length === 0 ? null : new Date(Math.max(...times)).toISOString(),
    attempts: (attempted?.attempts ?? 0) + (delivered_at === null ? 0 : 1),
  }
}

export const acknowledgementOf = (row: DeliveryRow, installedVersion: string | null): Acknowledgement => {
  const { acknowledged_at, acknowledged_epoch, acknowledged_position, acknowledged_version, queued_event_id } = row
  if (acknowledged_at === null || acknowledged_epoch === null || acknowledged_position === null) {
    return {
      state: queued_event_id === null ? "none" : "pending",
      installed_version: installedVersion,
      cursor: null,
      acknowledged_at: null,
    }
  }
  return {
    state: "acknowledged",
    installed_version: acknowledged_version,
    cursor: encodeCursor({ epoch: acknowledged_epoch, position: Number(acknowledged_position) }),
    acknowledged_at: acknowledged_at.toISOString(),
  }
}
