/**
 * How long the lifecycle is kept (docs/lifecycle.md): events and their messages ninety days, parts of snapshots a
 * day after the last one that named them, messages of one stream alone ninety days, and a day once they were delivered.
 *
 * A project's history is cut from its beginning, so that what is left has no gap whatever order clocks gave: an event
 * goes with all that came before it, and only once it is signed. A cursor before what is left answers `cursor_expired`.
 * Of events that Access versions, reviews and grants refer to, the place stays.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { FactKind } from "../../schemas/identity/Facts.ts"
import { Database } from "../platform/database/Database.ts"
import { floorOf } from "../platform/Ids.ts"

const dayMillis = 24 * 60 * 60_000
const keptMillis = 90 * dayMillis
/** The trigger judges by the database's clock, and ours may be a little ahead of it. */
const marginMillis = 60_000
const partsKeptMillis = dayMillis
const deliveredKeptMillis = dayMillis

const projectsAtOnce = 10
const eventsAtOnce = 2_000
const partsAtOnce = 50
const ownAtOnce = 1_000

/** Kinds that something refers to by the event's id. */
const referredTo: ReadonlyArray<FactKind> = [
  "access-granted",
  "access-revoked",
  "token-claims-change",
  "access-review-approved",
  "access-review-revoked",
  "service-grant-approved",
  "service-grant-revoked",
]

export class Retention extends Context.Service<Retention, {
  /** Prunes everything that is over, in steps of some thousand rows; gives how many events went. */
  readonly prune: Effect.Effect<number, SqlError.SqlError>
}>()("bailiwick/services/lifecycle/Retention") {
  static readonly layer = Layer.effect(
    Retention,
    Effect.gen(function* () {
      const { owner, sql } = yield* Database

      /** Cuts the histories of some projects after `after`; gives how many events went, and where it stopped looking. */
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
          // Nothing of these went: what is left of them is not signed, or has something younger before it.
          if (n === 0 && last === null) return gone
          if (n === 0) after = last!
        }
      })

      /** Deletes by the page until there is nothing left to delete. */
      const whole = <E>(step: Effect.Effect<ReadonlyArray<unknown>, E>, atOnce: number) =>
        Effect.repeat(step, { until: (rows) => rows.length < atOnce })

      const prune = Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        const gone = yield* events
        const [parts, own] = [new Date(now - partsKeptMillis), new Date(now - keptMillis)]
        const delivered = new Date(now - deliveredKeptMillis)
        yield* whole(
          sql`
            delete from lifecycle_snapshot_parts p using (
              select project_id, digest from lifecycle_snapshot_parts where named_at < ${parts}
              order by named_at limit ${partsAtOnce}
            ) o where p.project_id = o.project_id and p.digest = o.digest and p.named_at < ${parts} returning 1`,
          partsAtOnce,
        )
        yield* whole(
          sql`
            delete from lifecycle_stream_messages where id in (
              -- By their ids, which tell when they were made, and by when they were delivered.
              (select id from lifecycle_stream_messages where id < ${floorOf(own.getTime())}::uuid
                order by id limit ${ownAtOnce})
              union all
              (select id from lifecycle_stream_messages where delivered_at < ${delivered}
                order by delivered_at limit ${ownAtOnce})
              limit ${ownAtOnce}) returning 1`,
          ownAtOnce,
        )
        return gone
      }).pipe(Effect.withSpan("Retention.prune"))

      return Retention.of({ prune })
    }),
  )
}
