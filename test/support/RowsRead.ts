/** Counts the rows that PostgreSQL reads for an effect, as PostgreSQL itself counts them for a transaction. */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import { setImmediate } from "node:timers/promises"

interface Read {
  readonly name: string
  readonly rows: number
}

/**
 * Lets the microtasks of the multiplexed connection run. On Deno several answers can be read before any of them does, and
 * @effect/sql-pg 4.0.5 takes the one that a statement has left for the sign that the connection is idle: it then drops
 * the answer of the transaction that has begun in the meantime, which waits for ever. (`Database.reads` has no
 * transactions but these.)
 */
const idle = Effect.promise(() => setImmediate())

/**
 * Runs `effect` in a transaction of `client`; gives the rows that it read of each table, by index or not, beside its
 * result. Only statements of this client are counted.
 */
export const rowsRead = Effect.fnUntraced(
  function* <A, E, R>(client: PgClient.PgClient, effect: Effect.Effect<A, E, R>) {
    const counters = client<Read>`
    select relname as name, (seq_tup_read + coalesce(idx_tup_fetch, 0))::int as rows from pg_stat_xact_user_tables`
    yield* idle
    return yield* Effect.gen(function* () {
      const before = new Map((yield* counters).map(({ name, rows }) => [name, rows]))
      const result = yield* effect
      const after = (yield* counters).map(({ name, rows }) => [name, rows - (before.get(name) ?? 0)] as const)
      return [new Map(after.filter(([, rows]) => rows > 0)), result] as const
    }).pipe(client.withTransaction)
  },
)
