import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Effect, Exit } from "effect"
import { Reactivity } from "effect/reactivity"
import { Database } from "../../../../services/platform/database/Database.ts"
import { run } from "../../../../services/platform/database/UnitOfWork.ts"
import { answer } from "../../../../src/http/edge/ErrorMapping.ts"
import { TestDatabase } from "../../../support/TestDatabase.ts"

/** The answer to a request whose command ends in this failure. */
const statusOf = <A, E>(command: Effect.Effect<A, E, Database>) =>
  Effect.flatMap(
    Effect.exit(run(command)),
    (exit) =>
      Exit.isSuccess(exit) ? Effect.succeed(200) : Effect.map(answer(exit.cause), ({ response }) => response.status),
  )

layer(TestDatabase.layer, { excludeTestServices: true })("a database that cannot be used now is 503", (it) => {
  it.effect("is 503 for a server that became read-only after a fail-over", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const command = Effect.andThen(sql`set transaction read only`, sql`insert into schema_meta (min_app) values (1)`)
      assert.strictEqual(yield* statusOf(command), 503)
    }))

  it.effect("is 503 for a server without a free connection", () =>
    Effect.gen(function* () {
      const { owner } = yield* Database
      const { name, url } = yield* TestDatabase
      yield* owner.unsafe(`alter database ${name} connection limit 0`)
      const sql = yield* PgClient.make({ url, maxConnections: 1 }).pipe(Effect.provide(Reactivity.layer))
      const status = yield* statusOf(sql`select 1`)
      yield* owner.unsafe(`alter database ${name} connection limit -1`)
      assert.strictEqual(status, 503)
    }).pipe(Effect.scoped))

  it.effect("is 503 for a transaction that the server ended while its process was frozen", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const command = Effect.gen(function* () {
        const [own] = yield* sql<{ pid: number }>`
          select pg_backend_pid() as pid, set_config('idle_in_transaction_session_timeout', '1ms', true)`
        yield* Effect.repeat(
          (yield* Database).reads<{ n: number }>`select count(*)::int as n from pg_stat_activity where pid = ${
            own!.pid
          }`,
          { until: ([row]) => row!.n === 0 },
        )
        yield* sql`select 1`
      })
      assert.strictEqual(yield* statusOf(command), 503)
    }))

  it.effect("is still 500 for a wrong statement of ours", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      assert.strictEqual(yield* statusOf(sql`select nothing`), 500)
      assert.strictEqual(yield* statusOf(sql`select 1 / 0`), 500)
    }))
})
