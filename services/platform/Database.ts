/**
 * PostgreSQL, in four pools, because one kind of statement must not wait behind another (RULES, Transactions):
 *
 * - `sql`: transactions, claims and every write; one connection at a time per caller.
 * - `reads`: single short SELECTs, several of them multiplexed on one connection. Never a transaction, never a lock.
 * - `wide`: two connections for counts, exports and other statements that may take long.
 * - `owner`: the role that owns the tables; migrations and partition upkeep only.
 *
 * Every pool limits itself on the server: a frozen process loses its locks after 5 s, a lock is waited for 2 s.
 */
import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Redacted } from "effect"
import { Reactivity } from "effect/reactivity"
import { lossFails } from "./Database/Lost.ts"

export interface DatabaseConfig {
  readonly url: Redacted.Redacted
  readonly ownerUrl: Redacted.Redacted
  /** Connections of the transaction pool. */
  readonly maxConnections: number
}

const limits = (statement: string) => ({
  statement_timeout: statement,
  lock_timeout: "2s",
  idle_in_transaction_session_timeout: "5s",
  timezone: "UTC",
})

export class Database extends Context.Service<Database, {
  readonly sql: PgClient.PgClient
  readonly reads: PgClient.PgClient
  readonly wide: PgClient.PgClient
  readonly owner: PgClient.PgClient
}>()("bailiwick/services/platform/Database") {
  static readonly layer = (config: DatabaseConfig) =>
    Layer.effect(
      Database,
      Effect.gen(function* () {
        const pool = Effect.fnUntraced(function* (statement: string, options: Partial<PgClient.PgPoolConfig>) {
          const client = yield* PgClient.make({
            url: config.url,
            applicationName: "bailiwick",
            startupParameters: limits(statement),
            connectTimeout: "5 seconds",
            ...options,
          })
          const { withTransaction } = client
          return Object.assign(client, {
            withTransaction: <R, E, A>(effect: Effect.Effect<A, E, R>) => lossFails(withTransaction(effect)),
          })
        })
        return Database.of({
          sql: yield* pool("10s", { maxConnections: config.maxConnections }),
          reads: yield* pool("2s", {
            maxConnections: 4,
            multiplex: true,
            multiplexConcurrency: 4,
            // Lookups by key over daily partitions: planning anew cost more than twice what executing did.
            startupParameters: { ...limits("2s"), plan_cache_mode: "force_generic_plan" },
          }),
          wide: yield* pool("60s", { maxConnections: 2 }),
          owner: yield* pool("60s", { url: config.ownerUrl, maxConnections: 1 }),
        })
      }),
    ).pipe(Layer.provide(Reactivity.layer))
}
