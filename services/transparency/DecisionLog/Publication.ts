/**
 * Publishes checkpoints on the stream DECISION_LOG, each with the entries since the one before, and serves what the
 * broker has. The broker takes a checkpoint only as the successor of the message that this database knows as the last
 * one. Where it has another one, or where the installation's epoch is new, that message is compared with the log: a
 * larger log, or one with another root, was published by a history that this database has lost or never had, and the
 * log is held: it gives no second answer about what it has published. So it is where a message before the newest one
 * shows that, and in a new epoch where the broker has lost the message that this database knows: nothing then shows
 * what else had been published.
 *
 * Killed before the broker's answer is stored: the broker refuses the checkpoint, the comparison finds it equal, and it
 * is published once more.
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect, Option, Schema } from "effect"
import type { SqlError } from "effect/sql"
import { CheckpointMessage, logSubject } from "../../../schemas/bus/LogMessage.ts"
import { isAnother } from "../../platform/database/Installation.ts"
import { faultPoint } from "../../platform/Failpoints.ts"
import type { Bus, BusError } from "../../platform/messaging/Bus.ts"
import { isSignedBy, signedCheckpoint } from "../LogCheckpoint.ts"
import type { logKeys } from "./LogKeys.ts"
import { type HeldLogReason, type LogHead, readEntries, readHead, readRoot } from "./StoredLog.ts"

/** Entries of one message, whose size the broker bounds. */
const mostEntries = 4_096

/** Published again after so long, since the stream keeps messages for 90 days. */
export const againMillis = 30 * 24 * 60 * 60_000

/** The broker's error: the last message of the subject is not the expected one. */
const wrongLast = "10071 "

const read = Schema.decodeUnknownOption(Schema.fromJsonString(CheckpointMessage))

/** How far the clocks of broker and database may be apart. */
const clockMillis = 10 * 60_000

const isOurs = ({ checkpoint, origin, root, size }: CheckpointMessage, keys: ReadonlyArray<string>) =>
  isSignedBy(keys, checkpoint, { origin, size, root: Buffer.from(root, "base64") })

const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString("base64")

export interface Finding {
  readonly reason: HeldLogReason
  readonly details: Readonly<Record<string, number | string>>
  /** A log that has reached this size meanwhile, by another process, is not at fault. */
  readonly unlessOfSize?: number
}

export const publication = (
  { bus, hold, keys, sql }: {
    readonly sql: PgClient.PgClient
    readonly bus: Bus["Service"]
    readonly keys: ReturnType<typeof logKeys>
    readonly hold: (finding: Finding) => Effect.Effect<void, SqlError.SqlError>
  },
) => {
  /** Why a checkpoint of this log does not fit its head, or null. */
  const contradiction = Effect.fnUntraced(function* ({ size }: LogHead, { root, size: published }: CheckpointMessage) {
    if (published > size) {
      return { reason: "behind", details: { size, published }, unlessOfSize: published } satisfies Finding
    }
    return base64(yield* readRoot(sql, published)) === root
      ? null
      : { reason: "different", details: { size, published } } satisfies Finding
  })

  /** Why what is published does not fit the log, or null. Only what a key of this log has signed counts. */
  const faultOf = Effect.fnUntraced(function* (head: LogHead, data: Uint8Array) {
    const { origin, size } = head
    const found = read(new TextDecoder().decode(data))
    if (found._tag === "None" || found.value.origin !== origin) {
      return { reason: "unreadable", details: { size } } satisfies Finding
    }
    if (!isOurs(found.value, yield* keys.known)) return { reason: "unreadable", details: { size } } satisfies Finding
    return yield* contradiction(head, found.value)
  })

  /**
   * Why what the broker has got after the message `seq` does not fit the log, or null: a message that no key of the log
   * has signed, or the largest checkpoint. The newest message need not be the largest: any publisher can send
   * an old one of this log's once more.
   */
  const faultAfter = Effect.fnUntraced(function* (head: LogHead, seq: number) {
    const known = yield* keys.known
    const since = head.published_at === null ? 0 : head.published_at.getTime() - clockMillis
    const found: { largest: CheckpointMessage | null; isForeign: boolean } = { largest: null, isForeign: false }
    yield* bus.history("DECISION_LOG", Math.max(0, since), (messages) =>
      Effect.sync(() => {
        for (const one of messages) {
          if (one.subject !== logSubject || one.seq <= seq) continue
          const message = Option.getOrNull(read(new TextDecoder().decode(one.data)))
          if (message === null || message.origin !== head.origin || !isOurs(message, known)) found.isForeign = true
          else if (message.size > (found.largest?.size ?? -1)) found.largest = message
        }
      }))
    // A key that this database has lost may have signed it.
    if (found.isForeign) return { reason: "unreadable", details: { size: head.size } } satisfies Finding
    return found.largest === null ? null : yield* contradiction(head, found.largest)
  })

  /** Compares the log with what the broker has; holds the log, or confirms it for the epoch. */
  const compare = Effect.fnUntraced(function* (head: LogHead, epoch: number) {
    const found = yield* bus.newest("DECISION_LOG", logSubject)
    const seq = found?.seq ?? 0
    if (head.confirmed_epoch !== epoch && seq < head.published_seq) {
      return yield* hold({ reason: "gone", details: { size: head.size, known: head.published_seq, found: seq } })
    }
    const fault = found === null ? null : (yield* faultOf(head, found.data)) ??
      (seq === head.published_seq ? null : yield* faultAfter(head, seq < head.published_seq ? 0 : head.published_seq))
    if (fault !== null) return yield* hold(fault)
    yield* sql`
      update log_head set confirmed_epoch = ${epoch}, published_seq = ${seq}
      where size >= ${head.size} and held_reason is null and exists (select from installation where epoch = ${epoch})`
  })

  /** The next checkpoint to publish, with its entries. */
  const next = Effect.fnUntraced(function* (head: LogHead) {
    const first = head.published_size ?? 0
    const size = Math.min(head.size, first + mostEntries)
    const root = size === head.size ? head.root : yield* readRoot(sql, size)
    const entries = yield* readEntries(sql, first, size)
    const checkpoint = signedCheckpoint({ origin: head.origin, size, root }, ...(yield* keys.signing))
    const message: CheckpointMessage = {
      origin: head.origin,
      size,
      root: base64(root),
      checkpoint,
      first,
      entries: entries.map(base64),
    }
    return message
  })

  const send = (message: CheckpointMessage, after: number) =>
    Effect.map(
      bus.publish(logSubject, JSON.stringify(message), {
        headers: { "Nats-Expected-Last-Subject-Sequence": String(after) },
      }),
      ({ seq }): number | null => seq,
    ).pipe(Effect.catchIf(
      (error: BusError) => error.reason === "refused" && error.detail.startsWith(wrongLast),
      () => Effect.succeed(null),
    ))

  /** Publishes the next checkpoint where one is due; returns whether there may be more to do at once. */
  const publish = Effect.gen(function* () {
    const head = yield* readHead(sql)
    if (head === null || head.held_reason !== null) return false
    const [installation] = yield* sql<{ epoch: number; another: boolean }>`
      select epoch, ${isAnother(sql)} as another from installation`
    const { another, epoch } = installation!
    // Its new epoch begins first: in the old one, an empty broker would get the checkpoint of this database.
    if (another) return false
    if (head.confirmed_epoch !== epoch) {
      yield* compare(head, epoch)
      return true
    }
    const now = new Date(yield* Clock.currentTimeMillis)
    const old = head.published_at === null || now.getTime() - head.published_at.getTime() > againMillis
    if (head.published_size === head.size && !old) return false
    const message = yield* next(head)
    const seq = yield* send(message, head.published_seq)
    if (seq === null) {
      yield* compare(head, epoch)
      return true
    }
    yield* faultPoint("log.published")
    yield* sql`
      update log_head set published_size = ${message.size}, published_seq = ${seq}, published_at = ${now},
        checkpoint = ${message.checkpoint}
      where size >= ${message.size} and coalesce(published_size, 0) <= ${message.size} and held_reason is null
        and published_seq < ${seq} and exists (select from installation where epoch = ${epoch})`
    return message.size < head.size
  }).pipe(Effect.withSpan("DecisionLog.publish"))

  return { publish }
}
