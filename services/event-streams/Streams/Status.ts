/**
 * Changes a stream's status (Shared Signals Framework 1.0, 8.1.2); nothing else does. An enabled stream delivers; a
 * paused stream holds its messages, as long as events are kept; a disabled stream drops them.
 *
 * - The receiver gets a `stream-updated` of a change by the transmitter, before everything else that waits, whatever
 *   the status; a newer change replaces one that was not delivered yet. A change by the receiver sends no message.
 * - A stream that was disabled, or is of an older epoch, goes on at the head of the history: the events in between were
 *   dropped, or are in a snapshot only.
 * - A process that is pushing the stream keeps its claim where the position stays, and so settles what was delivered;
 *   where the position jumps, or everything is dropped, it loses the claim.
 */
import { Clock, Effect } from "effect"
import type { ProjectId } from "../../../schemas/BrandedIds.ts"
import type { StreamStatus } from "../../../schemas/identity/StreamBodies.ts"
import { Audit } from "../../platform/observability/Audit.ts"
import { WakeUps } from "../../platform/messaging/WakeUps.ts"
import { Database } from "../../platform/database/Database.ts"
import { lifecycleTopic } from "../../lifecycle/EventLog.ts"
import { ownMessages } from "./ControlMessages.ts"

export interface StatusChange {
  readonly by: "receiver" | "transmitter"
  /** The receiver's words, or a code of the transmitter. */
  readonly reason: string | null
  /** Of a change by the transmitter: send nothing any more, not even `stream-updated`. */
  readonly untold?: boolean
  /** Of a change by the transmitter: change the status only while this claim holds. */
  readonly claim?: bigint
}

interface Row {
  readonly project_id: ProjectId
  readonly status: StreamStatus
  readonly epoch: number
  readonly claim: bigint | null
  readonly head_epoch: number | null
  readonly head_position: bigint | null
}

export const streamStatus = Effect.fnUntraced(function* (publicUrl: URL) {
  const { sql } = yield* Database
  const audit = yield* Audit
  const wakeUps = yield* WakeUps
  const own = yield* ownMessages(publicUrl)

  const lock = (streamId: string) =>
    Effect.map(
      sql<Row>`
        select t.project_id, t.status, t.epoch, t.claim, h.epoch as head_epoch, h.position as head_position
        from lifecycle_streams t left join lifecycle_heads h on h.project_id = t.project_id
        where t.id = ${streamId}::uuid for update of t`,
      ([row]) => row ?? null,
    )

  /** Deletes waiting messages and everything that was settled or held up beyond the position. */
  const drop = Effect.fnUntraced(function* (streamId: string) {
    yield* sql`
      delete from lifecycle_stream_messages
      where stream_id = ${streamId}::uuid and kind = 'verification' and delivered_at is null`
    yield* sql`delete from lifecycle_stream_settled where stream_id = ${streamId}::uuid`
    yield* sql`delete from lifecycle_stream_failing where stream_id = ${streamId}::uuid`
    yield* sql`update lifecycle_streams set reached = null, claim = null, lease_until = null where id = ${streamId}::uuid`
  })

  /** One attempt to change the status; null where the key of its `stream-updated` was stolen since: then try again. */
  const attempt = Effect.fnUntraced(
    function* (streamId: string, status: StreamStatus, { by, claim, reason, untold = false }: StatusChange) {
      const projectId = yield* own.projectOf(streamId)
      if (projectId === null) return false
      const announcement = by === "receiver" || untold
        ? null
        : yield* own.sign(streamId, projectId, "stream-updated", reason === null ? { status } : { status, reason })
      const now = new Date(yield* Clock.currentTimeMillis)
      return yield* sql.withTransaction(Effect.gen(function* () {
        if (announcement !== null && !(yield* own.isSound(announcement))) return null
        const row = yield* lock(streamId)
        if (row === null || claim !== undefined && row.claim !== claim) return false
        if (by === "transmitter" && (row.status === status || row.status === "disabled")) return false
        const stale = row.head_epoch !== null && row.head_epoch !== row.epoch
        if (status === "disabled" || status === "enabled" && (row.status === "disabled" || stale)) yield* drop(streamId)
        if (status === "enabled" && (row.status === "disabled" || stale)) {
          yield* sql`
            update lifecycle_streams set epoch = ${row.head_epoch ?? row.epoch}, position = ${row.head_position ?? 0n}
            where id = ${streamId}::uuid`
        }
        yield* sql`
          update lifecycle_streams set status = ${status}, status_by = ${by}, status_reason = ${reason},
            updated_at = ${now}, attempts = 0, not_before = 'epoch', failing_since = null,
            last_error = ${by === "receiver" ? sql`null` : sql`last_error`}
          where id = ${streamId}::uuid`
        yield* sql`
          delete from lifecycle_stream_messages
          where stream_id = ${streamId}::uuid and kind = 'stream-updated' and delivered_at is null`
        if (announcement !== null) {
          yield* sql`
            insert into lifecycle_stream_messages (id, stream_id, kind, message, created_at)
            values (${announcement.id}::uuid, ${streamId}::uuid, 'stream-updated', ${announcement.message}, ${now})`
        }
        if (by === "transmitter") {
          yield* audit.append({
            action: "lifecycle-stream.status",
            actor: "system",
            subject: `lifecycle-stream:${streamId}`,
            outcome: "done",
            details: { project: row.project_id, status, reason },
          })
        }
        yield* sql.afterCommit(wakeUps.notify(lifecycleTopic, [row.project_id]))
        return true
      }))
    },
  )

  /**
   * Changes the status of a stream; returns whether it did. Nothing changes where there is no such stream. A change by
   * the transmitter does nothing where the stream has that status, was disabled by its receiver, or `claim` no longer
   * holds.
   */
  const setStatus = Effect.fn("Streams.setStatus")(
    function* (streamId: string, status: StreamStatus, change: StatusChange) {
      for (;;) {
        const changed = yield* attempt(streamId, status, change)
        if (changed !== null) return changed
      }
    },
  )

  return { setStatus }
})
