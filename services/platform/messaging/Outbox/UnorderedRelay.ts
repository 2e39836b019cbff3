/**
 * Publishes rows without an order: claims a batch, publishes it at once and settles it in one statement that names the
 * claim. After a crash between ack and settlement the rows are published again: delivery is at least once.
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect, Result } from "effect"
import type { Bus } from "../Bus.ts"
import { faultPoint } from "../../Failpoints.ts"
import type { LeasedTable } from "../../database/Leases.ts"
import { backoffMillis, claimDue, claimed, release, settleFailed, stopTime, unfinished } from "../../database/Leases.ts"
import type { OutboxRecord } from "./Row.ts"
import { patienceMillis, publicationOf } from "./Row.ts"

export const outboxTable: LeasedTable = { table: "outbox", key: "id", keyType: "uuid" }

/** SQL of the condition for unordered rows that wait, over the alias `t`. */
const waiting = (sql: PgClient.PgClient) => sql`t.published_at is null and t.aggregate_id is null`

/** SQL of one row for each waiting row, as `unfinished` makes it. */
export const unpublished = (sql: PgClient.PgClient, most: number) => unfinished(sql, outboxTable, waiting(sql), most)

/** Much longer than a publication's deadline, so that the claim holds from the publication to the settlement. */
export const leaseMillis = 30_000

type Claimed = OutboxRecord & { readonly claim: bigint }

const publish = Effect.fnUntraced(
  function* (sql: PgClient.PgClient, bus: Bus["Service"], rows: ReadonlyArray<Claimed>, epoch: number) {
    const claim = rows[0]?.claim
    if (claim === undefined) return 0
    yield* faultPoint("relay.claimed")
    // Taken before the first byte leaves: a later sweep for a broker's loss selects rows by this time.
    const began = yield* Clock.currentTimeMillis
    const outcomes = yield* bus.publishAll(rows.map(publicationOf), epoch)
    yield* faultPoint("relay.published")
    const published = rows.filter((_, i) => Result.isSuccess(outcomes[i]!)).map((row) => row.id)
    const failures = rows.flatMap((row, i) => {
      const outcome = outcomes[i]!
      if (Result.isSuccess(outcome)) return []
      const afterMillis = backoffMillis(row.attempts, patienceMillis(outcome.failure))
      return [{ key: row.id, afterMillis, error: outcome.failure.message }]
    })
    if (published.length > 0) {
      const now = yield* Clock.currentTimeMillis
      yield* sql`
      update outbox set published_at = ${new Date(began)}, claim = null, lease_until = null, last_error = null
      where id = any(${published}::uuid[]) and claim = ${claim} and lease_until > ${new Date(now)}`
    }
    yield* settleFailed(sql, outboxTable, claim, failures)
    yield* faultPoint("relay.settled")
    return rows.length
  },
)

/** Publishes one batch; returns how many rows it claimed. A stop waits a moment for the broker's acks. */
export const publishDue = (sql: PgClient.PgClient, bus: Bus["Service"], limit: number, epoch: number) =>
  claimed({
    claim: claimDue<OutboxRecord>(sql, outboxTable, {
      leaseMillis,
      limit,
      also: sql`and ${waiting(sql)}`,
    }),
    work: (rows) => publish(sql, bus, rows, epoch),
    giveBack: ([first]) => first === undefined ? Effect.void : release(sql, outboxTable, first.claim),
    patience: stopTime,
  })
