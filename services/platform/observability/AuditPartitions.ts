/**
 * The audit's monthly partitions: made ahead, and dropped whole once all their records are older than the retention.
 * Records that evidence names outlive their month: each receipt of a review names the record of its decision, and is
 * kept for ever.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import { keepAuditIndexes } from "./AuditIndexes.ts"
import { Database } from "../database/Database.ts"
import { allowLonger } from "../database/Database/StalledConnections.ts"
import { prune } from "../database/Prune.ts"
import { leastIdAt } from "../Ids.ts"
import {
  create,
  dayMillis,
  drop,
  exclude,
  existing,
  isOurTurn,
  lacking,
  months,
  type Parent,
  type Partition,
} from "../database/RangePartitions.ts"

export interface AuditRetention {
  readonly auditDays: number
}

/** Records that one statement deletes from the default partition. */
const chunk = 5_000

export const auditTable: Parent = {
  table: "audit_records",
  key: "id",
  unit: months,
  ahead: 2,
  kept: "action in ('access-review.propose', 'access-review.approve', 'access-review.revoke')",
  storage: "",
  appendOnly: true,
}

/** Whether all records of a month are older than the retention. */
export const isOver = ({ number }: Partition, { auditDays }: AuditRetention, now: number): boolean =>
  months.startOf(number + 1) <= now - auditDays * dayMillis

export class AuditPartitions extends Context.Service<AuditPartitions, {
  /**
   * Makes months ahead and drops months whose retention is over. Any number of processes may call it; a process without
   * the owner's role does nothing.
   */
  readonly upkeep: Effect.Effect<void, SqlError.SqlError>
}>()("bailiwick/services/platform/observability/AuditPartitions") {
  static readonly layer = (retention: AuditRetention) =>
    Layer.effect(
      AuditPartitions,
      Effect.gen(function* () {
        const { owner, owns } = yield* Database

        const make = Effect.gen(function* () {
          const present = months.of(yield* Clock.currentTimeMillis)
          if (!(yield* isOurTurn(owner))) return
          const wanted = Array.from({ length: auditTable.ahead + 1 }, (_, i) => present + i)
          const missing = lacking(yield* existing(owner, auditTable), wanted)
          if (missing.length > 0) yield* exclude(owner, [auditTable])
          for (const month of missing) yield* create(owner, auditTable, month)
        }).pipe(owner.withTransaction)

        // One transaction for each month: every writer waits while a partition is detached.
        const end = (partition: Partition) =>
          Effect.gen(function* () {
            if (!(yield* isOurTurn(owner))) return
            const there = yield* existing(owner, auditTable)
            if (!there.some(({ name }) => name === partition.name)) return
            // Finding the records that outlive their month reads the whole month.
            yield* owner`set local statement_timeout = '5min'`
            yield* drop(owner, auditTable, partition.name)
          }).pipe(owner.withTransaction, allowLonger)

        /** Deletes old records of the default partition, whose month was not made in time. */
        const endLate = Effect.gen(function* () {
          const oldest = months.startOf(months.of((yield* Clock.currentTimeMillis) - retention.auditDays * dayMillis))
          const where = owner`id < ${leastIdAt(oldest)}::uuid and not (${owner.literal(auditTable.kept)})`
          yield* prune(owner, { table: "audit_records_default", where, order: "id", batch: chunk })
        })

        const upkeep = Effect.gen(function* () {
          if (!(yield* owns)) return
          yield* make
          const now = yield* Clock.currentTimeMillis
          for (const partition of yield* existing(owner, auditTable)) {
            if (isOver(partition, retention, now)) yield* end(partition)
          }
          yield* endLate
          // Last: a build that times out behind a long transaction is tried again with the next upkeep.
          yield* keepAuditIndexes(owner)
        }).pipe(Effect.withSpan("AuditPartitions.upkeep"))

        return AuditPartitions.of({ upkeep })
      }),
    )
}
