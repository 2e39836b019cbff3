/**
 * The outbox: no message is published whose transaction did not commit, and each that did is published at least once.
 *
 * A row is added in the transaction that decides; the relay publishes it after the commit. Other statements may insert
 * rows as well: `insert into outbox (id, stream, subject, payload, headers, msg_id, aggregate_id, seq, created_at,
 * not_before)`, where `id` is a UUIDv7, `payload` text, `headers` jsonb or null, `msg_id` = `id::text` or null for
 * none, `aggregate_id` and `seq` both null (no order) or both set, `created_at` = `not_before` = now of the program's
 * clock; and then `notifyAfterCommit`. A subject is built with `Subject.token` only.
 */
import { Array, Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { StreamName } from "../../../schemas/bus/BusStreams.ts"
import { WakeUps } from "./WakeUps.ts"
import { Bus } from "./Bus.ts"
import { Database } from "../database/Database.ts"
import { afterCommit, insertion, type Kind, write } from "../database/UnitOfWork.ts"
import { Ids } from "../Ids.ts"
import { freeExpired, soonDone, stopTime } from "../database/Leases.ts"
import { leasePartitions, needsPartitions, publishOrdered, releasePartitions } from "./Outbox/OrderedRelay.ts"
import type { OwnedPartition } from "./Outbox/OrderedRelay.ts"
import { compareStreams, sweepStreams } from "./Outbox/BrokerLossDetection.ts"
import { purgePublished } from "./Outbox/OutboxRetention.ts"
import { outboxTable, publishDue } from "./Outbox/UnorderedRelay.ts"

export interface OutboxMessage {
  readonly stream: StreamName
  /** Built with `Subject.token` for every id in it. */
  readonly subject: string
  /** The message's text, published as it is. */
  readonly payload: string
  readonly headers?: Readonly<Record<string, string>>
  /** For ordered streams: the aggregate and its version or position, which only grows. */
  readonly order?: { readonly aggregateId: string; readonly seq: number | bigint }
  /** false: no `Nats-Msg-Id`, for messages that may rightly be published twice. */
  readonly dedupe?: boolean
}

/** Messages that only name things. */
export interface Naming {
  readonly stream: StreamName
  readonly subject: string
  /** The message's text. */
  readonly text: (names: ReadonlyArray<string>) => string
}

const topic = "outbox"
const batch = 500
/** Named by one message at most. */
const mostNames = 200

interface OutboxRow {
  readonly id: string
  readonly stream: StreamName
  readonly subject: string
  readonly payload: string
  readonly headers: Readonly<Record<string, string>> | null
  readonly msg_id: string | null
  readonly aggregate_id: string | null
  readonly seq: string | null
  readonly created_at: string
  readonly not_before: string
}

interface Item {
  readonly row: OutboxRow
  /** Null: the row holds the whole message already. */
  readonly naming: Naming | null
  readonly names: ReadonlyArray<string>
}

/** Joins messages that name things under one subject. */
const joined = (items: Array.NonEmptyReadonlyArray<Item>): Array.NonEmptyReadonlyArray<Item> => {
  const indexes = new Map<string, number>()
  const all: globalThis.Array<Item> = []
  for (const item of items) {
    const index = item.naming === null ? undefined : indexes.get(item.naming.subject)
    const open = index === undefined ? undefined : all[index]
    if (open !== undefined && open.names.length + item.names.length <= mostNames) {
      all[index!] = { ...open, names: [...open.names, ...item.names] }
    } else {
      if (item.naming !== null) indexes.set(item.naming.subject, all.length)
      all.push(item)
    }
  }
  return Array.isReadonlyArrayNonEmpty(all) ? all : items
}

export class Outbox extends Context.Service<Outbox, {
  /**
   * Adds messages in the current transaction (UnitOfWork.ts) and wakes the relay after the commit; returns their ids in
   * order.
   */
  readonly add: (...messages: ReadonlyArray<OutboxMessage>) => Effect.Effect<ReadonlyArray<string>, SqlError.SqlError>
  /**
   * Adds messages that only name things: one message for all names of a subject in one write (UnitOfWork.ts), at most
   * 200, since the relay claims, publishes and settles each message by its row.
   */
  readonly name: (naming: Naming, names: ReadonlyArray<string>) => Effect.Effect<void, SqlError.SqlError>
  /** Wakes the relay after the commit, for statements that insert rows themselves. */
  readonly notifyAfterCommit: Effect.Effect<void>
  /** For the worker Relay only. */
  readonly relay: {
    /** The topic of the wake-up signal that new rows send. */
    readonly topic: string
    /** Publishes one batch of unordered rows over the bus's `epoch`; returns whether there may be more. */
    readonly publishDue: (epoch: number) => Effect.Effect<boolean, SqlError.SqlError>
    /** Publishes due rows of this process's partitions over the bus's `epoch`; returns whether there may be more. */
    readonly publishOrdered: (epoch: number) => Effect.Effect<boolean, SqlError.SqlError>
    /** Renews this process's leases of partitions, takes free partitions. */
    readonly leasePartitions: Effect.Effect<void, SqlError.SqlError>
    readonly releasePartitions: Effect.Effect<void, SqlError.SqlError>
    /**
     * Finds messages that the broker lost and makes them due again; returns whether it could read every stream's mark.
     */
    readonly recall: Effect.Effect<boolean, SqlError.SqlError>
    /** Frees claims whose lease ended. */
    readonly free: Effect.Effect<void, SqlError.SqlError>
    readonly purge: Effect.Effect<number, SqlError.SqlError>
  }
}>()("bailiwick/services/platform/messaging/Outbox") {
  static readonly layer = Layer.effect(
    Outbox,
    Effect.gen(function* () {
      const { sql } = yield* Database
      const bus = yield* Bus
      const wakeUps = yield* WakeUps
      const owner = crypto.randomUUID()
      let owned: ReadonlyArray<OwnedPartition> = []

      const notifyAfterCommit = afterCommit(sql, wakeUps.notify(topic))

      const outboxRows = insertion(sql, "outbox", {
        id: "uuid",
        stream: "text",
        subject: "text",
        payload: "text",
        headers: "jsonb",
        msg_id: "text",
        aggregate_id: "text",
        seq: "bigint",
        created_at: "timestamptz",
        not_before: "timestamptz",
      })

      const kept: Kind<Item> = {
        name: outboxRows.name,
        parts: (items) =>
          outboxRows.parts(
            Array.map(joined(items), ({ naming, names, row }) =>
              naming === null ? row : { ...row, payload: naming.text(names) }),
          ),
      }

      const add = Effect.fnUntraced(function* (...messages: ReadonlyArray<OutboxMessage>) {
        const ids = yield* (yield* Ids).batch(messages.length)
        if (!Array.isReadonlyArrayNonEmpty(messages)) return ids
        // Formatted once: to format a date for each row costs as much as the rest of the row.
        const now = new Date(yield* Clock.currentTimeMillis).toISOString()
        const rows = messages.map((message, i) => ({
          created_at: now,
          not_before: now,
          id: ids[i]!,
          stream: message.stream,
          subject: message.subject,
          payload: message.payload,
          headers: message.headers ?? null,
          msg_id: message.dedupe === false ? null : ids[i]!,
          aggregate_id: message.order?.aggregateId ?? null,
          seq: message.order === undefined ? null : String(message.order.seq),
        }))
        yield* write(sql, kept, rows.map((row) => ({ row, naming: null, names: [] })))
        yield* notifyAfterCommit
        return ids
      })

      const name = Effect.fnUntraced(function* (naming: Naming, names: ReadonlyArray<string>) {
        const parts = Array.chunksOf(names, mostNames)
        const ids = yield* (yield* Ids).batch(parts.length)
        const now = new Date(yield* Clock.currentTimeMillis).toISOString()
        const { stream, subject } = naming
        const row = { stream, subject, payload: "", headers: null, aggregate_id: null, seq: null }
        const rows = ids.map((id) => ({ ...row, id, msg_id: id, created_at: now, not_before: now }))
        yield* write(sql, kept, rows.map((row, i) => ({ row, naming, names: parts[i]! })))
        if (names.length > 0) yield* notifyAfterCommit
      })

      return Outbox.of({
        add,
        name,
        notifyAfterCommit,
        relay: {
          topic,
          publishDue: (epoch) => Effect.map(publishDue(sql, bus, batch, epoch), (claimed) => claimed === batch),
          // A stop waits a moment, so that acknowledged messages are settled and not published twice.
          publishOrdered: (epoch) => soonDone(publishOrdered(sql, bus, owner, () => owned, epoch), stopTime),
          leasePartitions: Effect.gen(function* () {
            const now = yield* Clock.currentTimeMillis
            if (!needsPartitions(owned, now)) return
            owned = yield* leasePartitions(sql, owner)
          }),
          releasePartitions: Effect.andThen(
            Effect.sync(() => void (owned = [])),
            Effect.asVoid(releasePartitions(sql, owner)),
          ),
          recall: Effect.gen(function* () {
            const complete = yield* compareStreams(sql, bus)
            if ((yield* sweepStreams(sql)) > 0) yield* wakeUps.notify(topic)
            return complete
          }),
          free: Effect.asVoid(freeExpired(sql, outboxTable)),
          purge: purgePublished(sql),
        },
      })
    }),
  )
}
