/**
 * A stream as delivery reads it: how far it was served, what it leaves out, and whether its receiver may have anything
 * now. The receiver needs an effective grant for `stream.manage` and for `events.read` (checked again at each
 * delivery).
 */
import { Clock, Effect } from "effect"
import type { Statement } from "effect/sql"
import type { ProjectId } from "../../../schemas/BrandedIds.ts"
import type { StreamStatus } from "../../../schemas/identity/StreamBodies.ts"
import { Database } from "../../platform/database/Database.ts"
import { grants } from "../../lifecycle/GrantCheck.ts"
import type { Wanted } from "../Streams/StreamSubjects.ts"

/** The columns that are checked again before each POST. */
export interface CheckedStream {
  readonly id: string
  readonly status: StreamStatus
  readonly claim: bigint | null
  readonly updated_at: Date
  /** The receiver's grants are effective. */
  readonly granted: boolean
  /** The history is of a newer epoch than the stream. */
  readonly stale: boolean
}

export interface StreamRecord extends CheckedStream, Wanted {
  readonly project_id: ProjectId
  /** The receiver, as `lifecycle_consumers` names it. */
  readonly consumer: string
  readonly delivery: "push" | "poll"
  readonly endpoint_url: string | null
  readonly authorization_header: Uint8Array | null
  readonly vault_kid: string | null
  readonly epoch: number
  readonly position: number
  /** Of a pushed stream with held-up subjects: the position up to which its events were read. */
  readonly reached: number | null
  /** The stream has own messages that were not delivered. */
  readonly own_waiting: boolean
  /** The position up to which the history of this epoch is signed. */
  readonly signed: number
}

export type ServedRow = Omit<StreamRecord, "position" | "reached" | "signed"> & {
  readonly position: bigint
  readonly reached: bigint | null
  readonly signed: bigint
}

export const servedOf = (row: ServedRow): StreamRecord => ({
  ...row,
  position: Number(row.position),
  reached: row.reached === null ? null : Number(row.reached),
  signed: Number(row.signed),
})

export const servedStreams = Effect.gen(function* () {
  const { reads, sql } = yield* Database
  const { stands } = yield* grants

  const status = (now: Date) =>
    sql`t.id::text as id, t.status, t.claim, t.updated_at, coalesce(h.epoch, t.epoch) <> t.epoch as stale,
      coalesce((
        select bool_or(${stands("stream.manage", now)}) and bool_or(${stands("events.read", now)})
        from service_grants g join projects p on p.id = g.project_id and not p.removed
        where g.project_id = t.project_id and g.service_issuer = t.service_issuer and g.service_id = t.service_id
      ), false) as granted`

  /** SQL of a row's columns, over the alias `t` and the aliases of `joins`. */
  const columns = (now: Date) =>
    sql`${status(now)}, t.project_id, t.service_issuer || ' ' || t.service_id as consumer, t.delivery, t.endpoint_url,
      t.authorization_header, t.vault_kid, t.epoch, t.position, t.reached, t.events_requested,
      coalesce(s.position, 0) as signed,
      exists (
        select from lifecycle_stream_messages o where o.stream_id = t.id and o.delivered_at is null
      ) as own_waiting,
      coalesce((
        select jsonb_agg(jsonb_build_object('subject', x.subject, 'included', x.included) order by x.said)
        from lifecycle_stream_subjects x where x.stream_id = t.id
      ), '[]') as subjects`

  const joins = sql.literal(`left join lifecycle_heads h on h.project_id = t.project_id
    left join lifecycle_signed s on s.project_id = t.project_id and s.epoch = t.epoch`)

  /** The one stream of `which`, over the alias `t`; null where there is none. */
  const read = Effect.fnUntraced(function* (which: Statement.Fragment) {
    const now = new Date(yield* Clock.currentTimeMillis)
    const [row] = yield* reads<ServedRow>`select ${columns(now)} from lifecycle_streams t ${joins} where ${which}`
    return row === undefined ? null : servedOf(row)
  })

  /** The status of these streams, in one statement, in no order. */
  const statuses = Effect.fnUntraced(function* (ids: ReadonlyArray<string>) {
    const now = new Date(yield* Clock.currentTimeMillis)
    return yield* reads<CheckedStream>`
      select ${status(now)} from unnest(${[...ids]}::uuid[]) i(id) join lifecycle_streams t on t.id = i.id
      left join lifecycle_heads h on h.project_id = t.project_id`
  })

  return { columns, joins, read, statuses }
})
