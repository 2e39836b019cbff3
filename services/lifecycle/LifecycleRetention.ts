/**
 * Prunes the lifecycle (docs/lifecycle.md): events and their messages are kept for ninety days, parts of snapshots for
 * a day after the last snapshot that named them, messages of single streams for ninety days, or a day once delivered.
 *
 * A project's history is cut from its beginning, so that the rest has no gap whatever the clocks said: an event is
 * deleted with all events before it, and only once it is signed. A cursor before the rest answers `cursor_expired`. The
 * positions of events that Access versions, reviews and grants refer to are kept.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { LifecycleEventKind } from "../../schemas/identity/LifecycleEventKinds.ts"
import { Database } from "../platform/database/Database.ts"
import { prune } from "../platform/database/Prune.ts"
import { leastIdAt } from "../platform/Ids.ts"

const dayMillis = 24 * 60 * 60_000
const keptMillis = 90 * dayMillis
/**
 * The trigger checks an event's age by the database's clock, and this process's clock may be a little ahead of that.
 */
const marginMillis = 60_000
const partsKeptMillis = dayMillis
const deliveredKeptMillis = dayMillis

const projectsAtOnce = 10
const eventsAtOnce = 2_000
const partsAtOnce = 50
const ownAtOnce = 1_000

/** Kinds of events to which other rows refer by the event's id. */
const referredTo: ReadonlyArray<LifecycleEventKind> = [
  "access-granted",
  "access-revoked",
  "token-claims-change",
  "access-review-approved",
  "access-review-revoked",
  "service-grant-approved",
  "service-grant-revoked",
]

export class LifecycleRetention extends Context.Service<LifecycleRetention, {
  /**
   * Prunes everything that is old enough, in steps of some thousand rows; returns how many events were deleted. A process
   * without the owner's role leaves events.
   */
  readonly prune: Effect.Effect<number, SqlError.SqlError>
}>()("bailiwick/services/lifecycle/LifecycleRetention") {
  static readonly layer = Layer.effect(
    LifecycleRetention,
    Effect.gen(function* () {
      const { owner, owns, sql } = yield* Database

      /** Cuts the histories of some projects after `after`; returns how many events went, and the last project. */
      const cut = (after: string, before: Date) =>
        Effect.map(
          owner<{ n: number; last: string | null }>`
            with old as materialized (
              select h.project_id, coalesce(s.epoch, 0) as epoch, coalesce(s.position, 0) as position
              from lifecycle_heads h
              join lateral (
                select e.created_at from lifecycle_events e where e.project_id = h.project_id
                order by e.epoch, e.position limit 1
              ) first on first.created_at < ${before}
              left join lifecycle_signed s on s.project_id = h.project_id
              where h.project_id > ${after} order by h.project_id limit ${projectsAtOnce}
            ), gone as materialized (
              select o.* from old cross join lateral (
                select e.*, bool_and(e.created_at < ${before}) over (order by e.epoch, e.position) as is_over
                from (
                  select id, project_id, epoch, position, digest, kind, created_at from lifecycle_events
                  where project_id = old.project_id and (epoch, position) <= (old.epoch, old.position)
                  order by epoch, position limit ${eventsAtOnce}
                ) e
              ) o where o.is_over
            ), placed as (
              insert into lifecycle_places (id, project_id, epoch, position, digest, created_at)
              select id, project_id, epoch, position, digest, created_at from gone
              where kind = any(${[...referredTo]}::text[])
              on conflict do nothing
            ), unsaid as (
              delete from lifecycle_messages m using gone g
              where m.project_id = g.project_id and m.epoch = g.epoch and m.position = g.position
            ), ended as (
              delete from lifecycle_events e using gone g where e.id = g.id returning 1
            )
            select (select count(*) from ended)::int as n, (select max(project_id) from old) as last`,
          ([row]) => row!,
        )

      const events = Effect.gen(function* () {
        const before = new Date((yield* Clock.currentTimeMillis) - keptMillis - marginMillis)
        let [after, gone] = ["", 0]
        for (;;) {
          const { last, n } = yield* cut(after, before)
          gone += n
          // Nothing of these projects went: their old events are unsigned or have a younger event before them.
          if (n === 0 && last === null) return gone
          if (n === 0) after = last!
        }
      })

      const pruneOld = Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        // No other role may delete events: a process that has the owner's credentials cuts the histories.
        const gone = (yield* owns) ? yield* events : 0
        const [parts, own] = [new Date(now - partsKeptMillis), new Date(now - keptMillis)]
        const delivered = new Date(now - deliveredKeptMillis)
        yield* prune(sql, {
          table: "lifecycle_snapshot_parts",
          where: sql`named_at < ${parts}`,
          order: "named_at",
          batch: partsAtOnce,
        })
        // By age, which the id tells, and by the time of delivery.
        const ofStreams = { table: "lifecycle_stream_messages", batch: ownAtOnce }
        yield* prune(sql, { ...ofStreams, where: sql`id < ${leastIdAt(own.getTime())}::uuid`, order: "id" })
        yield* prune(sql, { ...ofStreams, where: sql`delivered_at < ${delivered}`, order: "delivered_at" })
        return gone
      }).pipe(Effect.withSpan("Retention.prune"))

      return LifecycleRetention.of({ prune: pruneOld })
    }),
  )
}
