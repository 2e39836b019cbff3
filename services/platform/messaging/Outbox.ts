/**
 * The outbox: no message is published whose transaction did not commit, and each that did is published at least once.
 *
 * A row is added in the transaction that decides; the relay publishes it after the commit. Other statements may insert
 * rows as well: `insert into outbox (id, stream, subject, payload, headers, msg_id, aggregate_id, seq, created_at,
 * not_before)`, where `id` is a UUIDv7, `payload` text, `headers` jsonb or null, `msg_id` = `id::text` or null for
 * none, `aggregate_id` and `seq` both null (no order) or both set, `created_at` = `not_before` = now of the program's
 * clock; and then `ringAfterCommit`. A subject is built with `Subject.token` only.
 */
import { Array, Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { StreamName } from "../../../schemas/bus/BusStreams.ts"
import { WakeUps } from "./WakeUps.ts"
import { Bus } from "./Bus.ts"
import { Database } from "../database/Database.ts"
import { afterCommit, insertion, write } from "../database/Gathered.ts"
import { Ids } from "../Ids.ts"
import { freeExpired, soonDone, stopTime } from "../database/Leases.ts"
import { holdLanes, needsLanes, publishOrdered, releaseLanes } from "./Outbox/OrderedRelay.ts"
import type { HeldLane } from "./Outbox/OrderedRelay.ts"
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

const topic = "outbox"
const batch = 500

export class Outbox extends Context.Service<Outbox, {
  /**
   * Adds messages in the current transaction (Gathered.ts) and wakes the relay after the commit; returns their ids in
   * order.
   */
  readonly add: (...messages: ReadonlyArray<OutboxMessage>) => Effect.Effect<ReadonlyArray<string>, SqlError.SqlError>
  /** Wakes the relay after the commit, for statements that insert rows themselves. */
  readonly ringAfterCommit: Effect.Effect<void>
  /** For the worker Relay only. */
  readonly relay: {
    /** The topic of the wake-up signal that new rows send. */
    readonly topic: string
    /** Publishes one batch of unordered rows over the bus's `epoch`; returns whether there may be more. */
    readonly publishDue: (epoch: number) => Effect.Effect<boolean, SqlError.SqlError>
    /** Publishes due rows of this process's lanes over the bus's `epoch`; returns whether there may be more. */
    readonly publishOrdered: (epoch: number) => Effect.Effect<boolean, SqlError.SqlError>
    /** Renews this process's lanes, takes free ones. */
    readonly holdLanes: Effect.Effect<void, SqlError.SqlError>
    readonly releaseLanes: Effect.Effect<void, SqlError.SqlError>
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
      const bells = yield* WakeUps
      const owner = crypto.randomUUID()
      let held: ReadonlyArray<HeldLane> = []

      const ringAfterCommit = afterCommit(sql, bells.ring(topic))

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
        yield* write(sql, outboxRows, rows)
        yield* ringAfterCommit
        return ids
      })

      return Outbox.of({
        add,
        ringAfterCommit,
        relay: {
          topic,
          publishDue: (epoch) => Effect.map(publishDue(sql, bus, batch, epoch), (claimed) => claimed === batch),
          // A stop waits a moment, so that acknowledged messages are settled and not published twice.
          publishOrdered: (epoch) => soonDone(publishOrdered(sql, bus, owner, () => held, epoch), stopTime),
          holdLanes: Effect.gen(function* () {
            const now = yield* Clock.currentTimeMillis
            if (!needsLanes(held, now)) return
            held = yield* holdLanes(sql, owner)
          }),
          releaseLanes: Effect.andThen(Effect.sync(() => void (held = [])), Effect.asVoid(releaseLanes(sql, owner))),
          recall: Effect.gen(function* () {
            const complete = yield* compareStreams(sql, bus)
            if ((yield* sweepStreams(sql)) > 0) yield* bells.ring(topic)
            return complete
          }),
          free: Effect.asVoid(freeExpired(sql, outboxTable)),
          purge: purgePublished(sql),
        },
      })
    }),
  )
}
