/**
 * Writes what a course has come to, fenced by its claim: the stream's place, what was held up, its own messages that are
 * done with, and how it fares. A course whose claim no longer holds changes nothing.
 */
import { Clock, Effect } from "effect"
import { Database } from "../../platform/Database.ts"
import { countsOf } from "../Measures.ts"
import type { Course } from "./Course.ts"
import type { Served } from "./Served.ts"

/** What becomes of the claim: kept for so long, or given back, due again after so long. */
export type Ending = { readonly leaseMillis: number } | { readonly dueInMillis: number }

export const settlements = Effect.gen(function* () {
  const { sql } = yield* Database

  const write = Effect.fnUntraced(function* (course: Course, served: Served, ending: Ending, now: number) {
    const at = new Date(now)
    const kept = "leaseMillis" in ending
    const until = new Date(now + (kept ? ending.leaseMillis : ending.dueInMillis))
    const reached = course.reached ?? served.reached ?? served.position
    const moved = course.reached !== null || course.changed.size > 0
    const place = moved
      ? sql`position = greatest(t.position, ${course.placeFrom(reached)}),
          reached = ${course.held.size === 0 ? null : reached},`
      : sql``
    const own = `{${course.own.join(",")}}`
    const written = yield* sql`
      with moved as (
        update lifecycle_streams t set
          ${place} attempts = ${course.failures},
          failing_since = ${course.failingSince === null ? null : new Date(course.failingSince)},
          last_error = ${course.error}, verified_at = ${course.verified ? sql`${at}::timestamptz` : sql`t.verified_at`},
          ${kept ? sql`lease_until = ${until}` : sql`claim = null, lease_until = null, not_before = ${until}`}
        where t.id = ${course.id}::uuid and t.claim = ${course.claim} and t.epoch = ${served.epoch}
        returning t.id
      ), told as (
        update lifecycle_stream_messages m set delivered_at = ${at} from moved
        where m.stream_id = moved.id and m.id = any(${own}::uuid[])
      ), known as (
        insert into lifecycle_consumers as c (project_id, consumer, delivered_epoch, delivered_position, delivered_at,
          to_delivery)
        select ${served.project_id}, ${served.consumer}, ${served.epoch}::int, ${course.delivered}::bigint,
          ${at}::timestamptz, ${[...countsOf(course.took)]}::int[]
        from moved where ${course.delivered}::bigint is not null
        on conflict (project_id, consumer) do update
        set delivered_epoch = excluded.delivered_epoch, delivered_position = excluded.delivered_position,
          delivered_at = excluded.delivered_at, to_delivery = lifecycle_counted(c.to_delivery, excluded.to_delivery)
        where c.delivered_epoch is null
          or (excluded.delivered_epoch, excluded.delivered_position) > (c.delivered_epoch, c.delivered_position)
      )
      select from moved`
    if (kept) course.leaseUntil = until.getTime()
    return written.length > 0
  })

  const writeHeld = Effect.fnUntraced(function* (course: Course, { epoch }: Served) {
    const [held, gone] = [[] as Array<object>, [] as Array<string>]
    for (const key of course.changed) {
      const one = course.held.get(key)
      if (one === undefined) gone.push(key)
      else {
        held.push({
          ...{ subject_digest: key, subject: one.subject, epoch, position: one.position, attempts: one.attempts },
          ...{ not_before: new Date(one.notBefore).toISOString(), last_error: one.error },
        })
      }
    }
    if (gone.length > 0) {
      yield* sql`
        delete from lifecycle_stream_failing
        where stream_id = ${course.id}::uuid and subject_digest = any(${gone}::text[])`
    }
    if (held.length > 0) {
      yield* sql`
        insert into lifecycle_stream_failing (stream_id, subject_digest, subject, epoch, position, attempts, not_before,
          last_error)
        select ${course.id}::uuid, subject_digest, subject, epoch, position, attempts, not_before, last_error
        from jsonb_to_recordset(${sql.json(held)}) r(subject_digest text, subject jsonb, epoch integer, position bigint,
          attempts integer, not_before timestamptz, last_error text)
        on conflict (stream_id, subject_digest) do update
        set epoch = excluded.epoch, position = excluded.position, attempts = excluded.attempts,
          not_before = excluded.not_before, last_error = excluded.last_error`
    }
  })

  /** Gives whether the claim held. What was settled is forgotten by the course. */
  return Effect.fn("StreamPush.settle")(function* (course: Course, served: Served, ending: Ending) {
    const now = yield* Clock.currentTimeMillis
    const settled = yield* course.changed.size === 0
      ? write(course, served, ending, now)
      : sql.withTransaction(Effect.gen(function* () {
        const fenced = yield* write(course, served, ending, now)
        if (fenced) yield* writeHeld(course, served)
        return fenced
      }))
    course.own = []
    course.changed.clear()
    course.delivered = null
    course.took = []
    course.verified = false
    course.unsettled = 0
    course.settledAt = now
    return settled
  })
})
