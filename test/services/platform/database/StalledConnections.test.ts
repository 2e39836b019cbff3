/** Silent connections: those that a network swallows are given up, and those that are quiet for a reason are kept. */
import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Queue, Redacted } from "effect"
import { Reactivity } from "effect/reactivity"
import { SqlError } from "effect/sql"
import { allowLonger, watched } from "../../../../services/platform/database/Database/StalledConnections.ts"
import { relay } from "../../../support/TcpRelay.ts"
import { TestDatabase } from "../../../support/TestDatabase.ts"

/** A database of one connection that is given up after some three seconds of silence, and the network to it. */
const impatient = Effect.gen(function* () {
  const made = new URL(Redacted.value((yield* TestDatabase).url))
  const way = yield* relay(made)
  const url = new URL(made.href)
  url.hostname = "127.0.0.1"
  url.port = String(way.port)
  const client = (options: Partial<PgClient.PgPoolConfig>) =>
    PgClient.make({
      url: Redacted.make(url.href),
      maxConnections: 1,
      stream: watched(url.href, 3),
      ...options,
    }).pipe(Effect.provide(Reactivity.layer))
  return { client, way, sql: yield* client({}) }
})

const lost = (exit: Exit.Exit<unknown, unknown>) => {
  const error = Exit.isFailure(exit) ? exit.cause.reasons.find((reason) => "error" in reason)?.error : undefined
  assert.isTrue(SqlError.isSqlError(error) && error.reason._tag === "ConnectionError", String(error))
}

layer(TestDatabase.layer, { excludeTestServices: true, timeout: "60 seconds" })("a connection", (it) => {
  it.effect("is given up where the network swallows a statement or transaction; the next one answers", () =>
    Effect.gen(function* () {
      const { client, sql, way } = yield* impatient
      const many = yield* client({ multiplex: true })
      const one = (by: PgClient.PgClient) => by`select 1 as one`
      yield* Effect.all([one(sql), one(many)])
      const [begun, cut] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const within = yield* Effect.forkChild(Effect.exit(sql.withTransaction(
        one(sql).pipe(
          Effect.andThen(Deferred.succeed(begun, undefined)),
          Effect.andThen(Deferred.await(cut)),
          Effect.andThen(one(sql)),
        ),
      )))
      yield* Deferred.await(begun)
      way.cut()
      yield* Deferred.succeed(cut, undefined)
      const exits = yield* Effect.all([Fiber.join(within), Effect.exit(one(many)), Effect.exit(one(many))], {
        concurrency: "unbounded",
      })
      // In a transaction ConnectionLoss.ts makes the loss a failure.
      assert.isTrue(Exit.isFailure(exits[0]))
      lost(exits[1])
      lost(exits[2])
      way.mend()
      // A pool may still be connecting over the cut network; that attempt is given up as well.
      for (const by of [sql, many]) assert.deepStrictEqual(yield* Effect.retry(one(by), { times: 3 }), [{ one: 1 }])
    }))

  it.effect("is kept while idle, while listening, and during a long answer", () =>
    Effect.gen(function* () {
      const { client, sql } = yield* impatient
      const heard = yield* (yield* client({})).listen("somewhere")
      const pid = Effect.map(sql<{ pid: number }>`select pg_backend_pid() as pid`, ([row]) => row!.pid)
      const before = yield* pid
      // Each row is larger than the server's send buffer.
      const other = yield* client({})
      const rows = yield* other`
        select repeat('x', 20000) as x, pg_sleep(0.5) from generate_series(1, 10)`
      assert.strictEqual(rows.length, 10)
      assert.strictEqual(yield* pid, before)
      yield* sql.notify("somewhere", "here")
      assert.strictEqual((yield* Queue.take(heard)).payload, "here")
    }))

  it.effect("is kept during work that may take longer", () =>
    Effect.gen(function* () {
      const { sql } = yield* impatient
      yield* allowLonger(sql`select pg_sleep(5)`)
    }))
})
