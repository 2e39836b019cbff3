/**
 * The transparency log of decisions (docs/transparency.md). Each decision writes a leaf with its audit record
 * (platform/observability/Audit.ts); `advance` integrates waiting leaves and publishes the log's checkpoint. Any number
 * of processes may call it.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import { lock } from "../platform/database/AdvisoryLocks.ts"
import { Database } from "../platform/database/Database.ts"
import { faultPoint } from "../platform/Failpoints.ts"
import { millisOf } from "../platform/Ids.ts"
import { Bus, type BusError } from "../platform/messaging/Bus.ts"
import { Audit } from "../platform/observability/Audit.ts"
import { Vault } from "../platform/security/Vault.ts"
import { integratedAtOnce, integration } from "./DecisionLog/Integration.ts"
import { logKeys, makeLogKey } from "./DecisionLog/LogKeys.ts"
import { againMillis, type Finding, publication } from "./DecisionLog/Publication.ts"
import { type HeldLogReason, readHead } from "./DecisionLog/StoredLog.ts"
import type { LogOrigin } from "./LogCheckpoint.ts"
import { emptyRoot } from "./MerkleTree.ts"

export type { HeldLogReason } from "./DecisionLog/StoredLog.ts"

/** The state of the log, for operators. */
export interface LogStatus {
  readonly size: number
  /** The size of the checkpoint that is served; null before the first. */
  readonly published: number | null
  readonly held: HeldLogReason | null
  /** The time of the oldest decision that no published checkpoint contains. */
  readonly waitingSince: Date | null
}

/** The state of the log; null where it has not begun. */
export const logStatus = Effect.gen(function* () {
  const { sql } = yield* Database
  const head = yield* readHead(sql)
  if (head === null) return null
  // Entries have the order of their records, but for a decision that committed late: by the ids, it may be a little older.
  const [oldest] = yield* sql<{ record_id: string | null }>`
    select coalesce(
      (select record_id from log_entries where index = ${head.published_size ?? 0}),
      (select record_id from log_pending order by record_id limit 1))::text as record_id`
  const status: LogStatus = {
    size: head.size,
    published: head.published_size,
    held: head.held_reason,
    waitingSince: oldest!.record_id === null ? null : new Date(millisOf(oldest!.record_id)),
  }
  return status
})

export class DecisionLog extends Context.Service<DecisionLog, {
  /**
   * Begins the log where there is none, publishes a checkpoint that is due, and integrates waiting leaves; returns
   * whether there may be more to do at once.
   */
  readonly advance: Effect.Effect<boolean, SqlError.SqlError | BusError>
}>()("bailiwick/services/transparency/DecisionLog") {
  /** `origin`: how a log that begins names itself. */
  static readonly layer = (origin: LogOrigin) =>
    Layer.effect(
      DecisionLog,
      Effect.gen(function* () {
        const { sql } = yield* Database
        const audit = yield* Audit
        const bus = yield* Bus
        const vault = yield* Vault
        const keys = logKeys(sql, vault)

        const begin = Effect.gen(function* () {
          yield* lock(sql, "transparencyLog")
          const now = new Date(yield* Clock.currentTimeMillis)
          const begun = yield* sql`
            insert into log_head (origin, size, root, changed_at) values (${origin}, 0, ${emptyRoot}, ${now})
            on conflict do nothing returning 1`
          if (begun.length > 0) yield* makeLogKey(sql, vault, origin)
        }).pipe(sql.withTransaction)

        const hold = Effect.fnUntraced(function* ({ details, reason, unlessOfSize }: Finding) {
          const now = new Date(yield* Clock.currentTimeMillis)
          const held = yield* sql<{ origin: string }>`
            update log_head set held_reason = ${reason}, held_since = ${now}
            where held_reason is null and size < ${unlessOfSize ?? Number.MAX_SAFE_INTEGER}::bigint
            returning origin`
          for (const { origin } of held) {
            yield* audit.append({
              action: "log.held",
              actor: "system",
              subject: `log:${origin}`,
              outcome: "failed",
              code: reason,
              details,
            })
            yield* Effect.logWarning(`the transparency log is held: ${reason}`, details)
          }
        }, sql.withTransaction)

        const { integrate } = integration(sql)
        const { publish } = publication({ sql, bus, keys, hold })

        /** Whether there is anything to do: one statement, since most turns find nothing. */
        const due = Effect.gen(function* () {
          const old = new Date((yield* Clock.currentTimeMillis) - againMillis)
          const [row] = yield* sql<{ due: boolean }>`
            select h.held_reason is null and (
              h.confirmed_epoch is distinct from i.epoch or h.published_size is distinct from h.size
              or h.published_at < ${old} or exists (select from log_pending)) as due
            from installation i left join log_head h on true`
          return row!.due
        })

        const advance = Effect.gen(function* () {
          if (!(yield* due)) return false
          if ((yield* readHead(sql)) === null) yield* begin
          const integrated = yield* integrate
          if (integrated > 0) yield* faultPoint("log.integrated")
          const more = yield* publish
          return more || integrated === integratedAtOnce
        })

        return DecisionLog.of({ advance })
      }),
    )
}
