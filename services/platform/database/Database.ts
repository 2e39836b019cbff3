/**
 * PostgreSQL, in five pools, because one kind of statement must not wait behind another:
 *
 * - `sql`: transactions, claims and every write; one connection at a time per caller.
 * - `quick`: the hot writes of deliveries while they have few rows, on generic plans: planning a statement for one
 *   event took longer than running it. A statement for hundreds of rows is better planned with its values, on `sql`.
 * - `reads`: single short SELECTs, several of them multiplexed on one connection. Never a transaction, never a lock.
 * - `wide`: two connections for counts, exports and other statements that may take long.
 * - `owner`: the role that owns the tables; migrations and partition upkeep only, and only where `owns` says that this
 *   process has that role. Few processes need its credentials.
 *
 * Every pool sets limits on the server: a frozen process loses its locks after 5 s, a statement waits 2 s for a lock. A
 * connection on which a statement outlives these limits is destroyed here (StalledConnections.ts).
 */
import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Redacted } from "effect"
import { Reactivity } from "effect/reactivity"
import type { SqlError } from "effect/sql"
import { lossFails } from "./Database/ConnectionLoss.ts"
import { poolMetrics } from "./Database/PoolMetrics.ts"
import { grace, watched } from "./Database/StalledConnections.ts"

export interface DatabaseConfig {
  readonly url: Redacted.Redacted
  /** Null: `url` has the only role of this process, which may be the owner's. */
  readonly ownerUrl: Redacted.Redacted | null
  /** Connections of the transaction pool. */
  readonly maxConnections: number
  /** Multiplies every limit on the server; 1 by default. Tests set it higher, for starved machines. */
  readonly patience?: number
}

/**
 * Statements that a connection keeps prepared; beyond that the least recently used one is closed, here and in the
 * server. The program has more texts than that: gathered rows are written by hundreds of variants of one statement.
 */
const preparedStatements = 100

/** The limits of a pool's connections; a statement may run for `seconds`. */
const limits = (seconds: number, patience: number) => ({
  statement_timeout: `${seconds * patience}s`,
  lock_timeout: `${2 * patience}s`,
  idle_in_transaction_session_timeout: `${5 * patience}s`,
  timezone: "UTC",
})

/** Whether the only role owns the tables or, where there are none, may create them. */
const ownsTables = (sql: PgClient.PgClient) =>
  Effect.map(
    sql<{ owns: boolean }>`
      select coalesce(
        (select pg_has_role(relowner, 'usage') from pg_class where oid = to_regclass('public.effect_sql_migrations')),
        has_schema_privilege('public', 'create')
      ) as owns`,
    ([row]) => row!.owns,
  )

export class Database extends Context.Service<Database, {
  readonly sql: PgClient.PgClient
  readonly quick: PgClient.PgClient
  readonly reads: PgClient.PgClient
  readonly wide: PgClient.PgClient
  readonly owner: PgClient.PgClient
  /** Whether this process may do the owner's work. */
  readonly owns: Effect.Effect<boolean, SqlError.SqlError>
}>()("bailiwick/services/platform/database/Database") {
  static readonly layer = (config: DatabaseConfig) =>
    Layer.effect(
      Database,
      Effect.gen(function* () {
        const { patience = 1 } = config
        const pool = Effect.fnUntraced(function* (
          name: string,
          seconds: number,
          options: Partial<PgClient.PgPoolConfig>,
        ) {
          const { url = config.url, startupParameters } = options
          const metrics = yield* poolMetrics(name)
          const client = yield* PgClient.make({
            url,
            applicationName: "bailiwick",
            connectTimeout: "5 seconds",
            preparedStatementCacheSize: preparedStatements,
            stream: metrics.counted(watched(Redacted.value(url), seconds * patience + grace)),
            ...options,
            startupParameters: { ...limits(seconds, patience), ...startupParameters },
          })
          const withTransaction = metrics.measured(client)
          return Object.assign(client, {
            withTransaction: <R, E, A>(effect: Effect.Effect<A, E, R>) => lossFails(withTransaction(effect)),
          })
        })
        const owner = yield* pool("owner", 60, { url: config.ownerUrl ?? config.url, maxConnections: 1 })
        return Database.of({
          sql: yield* pool("sql", 10, { maxConnections: config.maxConnections }),
          // One connection to accept events, one to settle deliveries.
          quick: yield* pool("quick", 10, {
            maxConnections: 2,
            startupParameters: { plan_cache_mode: "force_generic_plan" },
          }),
          reads: yield* pool("reads", 2, {
            maxConnections: 4,
            multiplex: true,
            multiplexConcurrency: 4,
            // Lookups by key over daily partitions: planning them each time cost more than twice as much as running
            // them.
            startupParameters: { plan_cache_mode: "force_generic_plan" },
          }),
          wide: yield* pool("wide", 60, { maxConnections: 2 }),
          owner,
          owns: config.ownerUrl === null ? ownsTables(owner) : Effect.succeed(true),
        })
      }),
    ).pipe(Layer.provide(Reactivity.layer))
}
