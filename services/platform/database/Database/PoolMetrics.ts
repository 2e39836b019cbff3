/**
 * Metrics of a pool (docs/metrics.md). The library's pool shows no state, so connections are counted where their
 * sockets are made, and waiting is measured around transactions: a pool that is too small has no connection for the next
 * transaction.
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect, Metric, Option } from "effect"
import type { Socket } from "node:net"

const connections = Metric.gauge("bailiwick_database_connections", {
  description: "Open connections to PostgreSQL, by pool",
})
const transactions = Metric.gauge("bailiwick_database_transactions", {
  description: "Transactions that wait for a connection or have one, by pool",
})
const waits = Metric.histogram("bailiwick_database_wait_seconds", {
  description: "From asking for a transaction to its first statement: a free connection, and BEGIN",
  boundaries: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
})

type WithTransaction = PgClient.PgClient["withTransaction"]

export const poolMetrics = Effect.fnUntraced(function* (pool: string) {
  const context = yield* Effect.context<never>()
  const clock = yield* Clock.Clock
  const wait = Metric.withAttributes(waits, { pool })
  const counter = (metric: Metric.Gauge<number>) => {
    let value = 0
    return (by: number) => metric.updateUnsafe(value += by, context)
  }
  const open = counter(Metric.withAttributes(connections, { pool }))
  const waiting = counter(Metric.withAttributes(transactions, { pool, state: "waiting" }))
  const underWay = counter(Metric.withAttributes(transactions, { pool, state: "under_way" }))
  for (const count of [open, waiting, underWay]) count(0)

  /** Counts the sockets of this factory from their connection to their close. */
  const counted = (connect: (() => Socket) | undefined): (() => Socket) | undefined =>
    connect && (() => {
      const socket = connect()
      socket.once("connect", () => {
        open(1)
        socket.once("close", () => open(-1))
      })
      return socket
    })

  /** Measures transactions of this client; one within another of the same client is a savepoint and does not wait. */
  const measured = ({ transactionService, withTransaction }: PgClient.PgClient): WithTransaction => (effect) =>
    Effect.flatMap(Effect.serviceOption(transactionService), (within) => {
      if (Option.isSome(within)) return withTransaction(effect)
      const asked = clock.currentTimeNanosUnsafe()
      let count = waiting
      count(1)
      const first = Effect.suspend(() => {
        wait.updateUnsafe(Number(clock.currentTimeNanosUnsafe() - asked) / 1e9, context)
        count(-1)
        count = underWay
        count(1)
        return effect
      })
      return Effect.ensuring(withTransaction(first), Effect.sync(() => count(-1)))
    })

  return { counted, measured }
})
