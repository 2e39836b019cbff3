/**
 * Builds the answer to a poll (RFC 8936, 2.5) from stored text: a page of a thousand messages is one row of the
 * database, and no message is decoded on its way.
 */
import { Effect } from "effect"
import { Database } from "../../platform/database/Database.ts"
import { deliversTwins, filtered } from "../Streams/StreamSubjects.ts"
import { isDue, type OwnMessage, reader } from "./Reader.ts"
import type { StreamRecord } from "./StreamRecord.ts"
import { twinMessages, twinsAtOnce } from "./TwinMessages.ts"

interface Gathered {
  /** Members of the JSON object, joined by commas. */
  readonly members: string
  readonly count: number
  readonly more: boolean
  /** Everything up to here is in the answer, settled, or not for the stream. */
  readonly upTo: number
  /** Everything up to here is settled or not for the stream. */
  readonly passed: number
}

export interface PollResponse {
  /** The answer's JSON. */
  readonly body: string
  readonly count: number
  readonly more: boolean
  readonly passed: number
}

const memberOf = ({ id, message }: { readonly id: string; readonly message: string }) => `"${id}":"${message}"`

export const bodyOf = (members: ReadonlyArray<string>, more: boolean): string =>
  `{"sets":{${members.filter((member) => member !== "").join(",")}},"moreAvailable":${more}}`

const nothing = (position: number): PollResponse => ({
  body: bodyOf([], false),
  count: 0,
  more: false,
  passed: position,
})

export const pages = Effect.gen(function* () {
  const { sql } = yield* Database
  const { choose, messagesAt, ownOf } = yield* reader
  const twinned = yield* twinMessages

  const whole = ({ epoch, id, position, project_id }: StreamRecord, most: number) =>
    Effect.map(
      sql<
        {
          members: string
          taken: number
          found: number
          first: bigint | null
          last: bigint | null
          signed: bigint | null
        }
      >`
        with s as materialized (
          select position from lifecycle_signed where project_id = ${project_id} and epoch = ${epoch}
        )
        select (select position from s) as signed,
          coalesce(string_agg('"' || p.event_id::text || '":"' || p.message || '"', ',' order by p.position)
            filter (where p.nth <= ${most}), '') as members,
          (count(*) filter (where p.nth <= ${most}))::int as taken, count(*)::int as found,
          min(p.position) as first, max(p.position) filter (where p.nth <= ${most}) as last
        from (
          select q.*, row_number() over (order by q.position) as nth from (
            select m.position, m.event_id, m.message from lifecycle_messages m
            where m.project_id = ${project_id} and m.epoch = ${epoch} and m.position > ${position}
              and m.position <= (select position from s) and not exists (
                select from lifecycle_stream_settled x
                where x.stream_id = ${id}::uuid and x.epoch = m.epoch and x.position = m.position)
            order by m.position limit ${most + 1}
          ) q
        ) p`,
      ([row]): Gathered => {
        const { first, found, last, members, signed, taken } = row!
        const more = found > taken
        const end = Math.max(position, Number(signed ?? 0))
        return {
          members,
          count: taken,
          more,
          upTo: more ? Number(last ?? position) : end,
          // A message that is no longer kept does not stop the position.
          passed: first === null ? end : Number(first) - 1,
        }
      },
    )

  const chosenOnly = Effect.fnUntraced(function* (served: StreamRecord, room: number) {
    const most = deliversTwins(served.events_requested) ? Math.min(room, twinsAtOnce) : room
    const stretch = yield* choose(served, served.position, most + 1)
    const { messages: found, signed } = stretch.chosen.length === 0
      ? { messages: [], signed: stretch.upTo }
      : yield* messagesAt(served, stretch.chosen.map(({ position }) => position))
    const end = Math.max(served.position, Math.min(stretch.upTo, signed))
    const given = yield* twinned(served, found.slice(0, most))
    const beyond = found[most]
    return {
      members: given.map(memberOf).join(","),
      count: given.length,
      more: beyond !== undefined || !stretch.atEnd && end === stretch.upTo,
      upTo: beyond === undefined ? end : beyond.position - 1,
      passed: found.length === 0 ? end : found[0]!.position - 1,
    } satisfies Gathered
  })

  /** At most `most` messages; of a stream that is not enabled only `stream-updated`. */
  return Effect.fnUntraced(function* (served: StreamRecord, most: number) {
    const { position, signed } = served
    if (!served.own_waiting && signed <= position) return nothing(position)
    const own = served.own_waiting ? yield* ownOf(served.id) : []
    const waiting = own.filter(({ after }) => served.status === "enabled" || after === null)
    const isNow = (own: OwnMessage) => isDue(own, served.epoch, served.position)
    const first = waiting.filter(isNow).slice(0, most)
    if (served.status !== "enabled") {
      const more = waiting.length > first.length
      const page: PollResponse = {
        body: bodyOf(first.map(memberOf), more),
        count: first.length,
        more,
        passed: served.position,
      }
      return page
    }
    const room = most - first.length
    const events = yield* filtered(served) ? chosenOnly(served, room) : whole(served, room)
    const behind = waiting.filter((own) => !isNow(own) && isDue(own, served.epoch, events.upTo))
    const last = behind.slice(0, room - events.count)
    const more = events.more || last.length < behind.length || first.length < waiting.filter(isNow).length
    const page: PollResponse = {
      body: bodyOf([...first.map(memberOf), events.members, ...last.map(memberOf)], more),
      count: first.length + events.count + last.length,
      more,
      passed: events.passed,
    }
    return page
  })
})
