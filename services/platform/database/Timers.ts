/**
 * Timers as rows. An aggregate's timers follow from its state: a change of the state rewrites them in the same
 * transaction, and a timer that fires only makes the worker ask the state what is due. So a timer may fire twice, late,
 * or for a state that is gone, and nothing goes wrong; and a state that needs a timer always has one.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import { Database } from "./Database.ts"
import { type Kind, write } from "./UnitOfWork.ts"
import { idIn } from "./IdIn.ts"
import { backoffMillis, claimDue, freeExpired, type LeasedTable, release, settleFailed } from "./Leases.ts"

export interface Timer {
  readonly kind: string
  /** Milliseconds since 1970. */
  readonly dueAt: number
}

export interface AggregateTimers {
  readonly aggregateId: string
  readonly timers: ReadonlyArray<Timer>
}

export interface ClaimedTimer {
  readonly key: string
  readonly aggregate_id: string
  readonly kind: string
  readonly attempts: number
  readonly claim: bigint
}

const table: LeasedTable = { table: "timers", key: "key", keyType: "text" }
const leaseMillis = 30_000

export class Timers extends Context.Service<Timers, {
  /** Replaces all timers of an aggregate, in the current transaction (UnitOfWork.ts). */
  readonly set: (aggregateId: string, timers: ReadonlyArray<Timer>) => Effect.Effect<void, SqlError.SqlError>
  /** The same for several aggregates, each named once. */
  readonly setAll: (all: ReadonlyArray<AggregateTimers>) => Effect.Effect<void, SqlError.SqlError>
  /** Claims due timers of these kinds, the longest due first. */
  readonly claim: (
    kinds: ReadonlyArray<string>,
    limit: number,
  ) => Effect.Effect<ReadonlyArray<ClaimedTimer>, SqlError.SqlError>
  /** Releases timers that were claimed together and whose work was cut off: they are due as before. */
  readonly giveBack: (timers: ReadonlyArray<ClaimedTimer>) => Effect.Effect<void, SqlError.SqlError>
  /** Releases timers whose work failed: each is tried again, later each time, at most 5 s later. */
  readonly retry: (timers: ReadonlyArray<ClaimedTimer>, error: string) => Effect.Effect<void, SqlError.SqlError>
  /** Milliseconds until the next timer is due, 0 where one is due now, at most `max`. */
  readonly untilNext: (kinds: ReadonlyArray<string>, max: number) => Effect.Effect<number, SqlError.SqlError>
  /** Frees claims whose lease ended. */
  readonly free: Effect.Effect<void, SqlError.SqlError>
}>()("bailiwick/services/platform/database/Timers") {
  static readonly layer = Layer.effect(
    Timers,
    Effect.gen(function* () {
      const { sql } = yield* Database

      const kept: Kind<AggregateTimers> = {
        name: "timers",
        parts: (all) => {
          // Where an aggregate was named twice, the last call counts.
          const byId = new Map(all.map((one) => [one.aggregateId, one.timers]))
          const ids = [...byId.keys()]
          const rows = [...byId].flatMap(([aggregateId, timers]) =>
            timers.map(({ dueAt, kind }) => ({ aggregate_id: aggregateId, kind, due_at: new Date(dueAt) }))
          )
          const keys = rows.map(({ aggregate_id, kind }) => `${kind}:${aggregate_id}`)
          const gone = sql`
            delete from timers
            where ${idIn(sql, "aggregate_id", "text", ids)} and not (${idIn(sql, "key", "text", keys)})`
          return rows.length === 0 ? [{ name: "gone_timers", statement: gone }] : [
            { name: "gone_timers", statement: gone },
            {
              name: "kept_timers",
              statement: sql`
                insert into timers (aggregate_id, kind, due_at, not_before)
                select aggregate_id, kind, due_at, due_at
                from json_to_recordset(${
                JSON.stringify(rows)
              }::json) r(aggregate_id text, kind text, due_at timestamptz)
                on conflict (aggregate_id, kind) do update
                set due_at = excluded.due_at, not_before = excluded.not_before, attempts = 0, last_error = null,
                  claim = null, lease_until = null`,
            },
          ]
        },
      }

      const setAll = (all: ReadonlyArray<AggregateTimers>) => write(sql, kept, all)

      const retry = Effect.fnUntraced(function* (timers: ReadonlyArray<ClaimedTimer>, error: string) {
        for (const [claim, own] of Map.groupBy(timers, ({ claim }) => claim)) {
          const failures = own.map(({ attempts, key }) => ({ key, afterMillis: backoffMillis(attempts, 5_000), error }))
          yield* settleFailed(sql, table, claim, failures)
        }
      })

      return Timers.of({
        set: (aggregateId, timers) => setAll([{ aggregateId, timers }]),
        setAll,
        claim: (kinds, limit) =>
          claimDue<ClaimedTimer>(sql, table, {
            leaseMillis,
            limit,
            also: sql`and t.kind = any(${[...kinds]}::text[])`,
          }),
        giveBack: ([first]) => first === undefined ? Effect.void : release(sql, table, first.claim),
        retry,
        untilNext: (kinds, max) =>
          Effect.flatMap(Clock.currentTimeMillis, (now) =>
            Effect.map(
              // Reads up to `max` only: beyond it any number of timers of other kinds may precede the first of these.
              sql<{ next: Date }>`
                select not_before as next from timers
                where claim is null and not_before < ${new Date(now + max)} and kind = any(${[...kinds]}::text[])
                order by not_before limit 1`,
              ([row]) => row === undefined ? max : Math.min(max, Math.max(0, row.next.getTime() - now)),
            )),
        free: Effect.asVoid(freeExpired(sql, table)),
      })
    }),
  )
}
