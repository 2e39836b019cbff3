import { assert, layer } from "@effect/vitest"
import { Cause, Effect, Exit } from "effect"
import { SqlError } from "effect/sql"
import { Database } from "../../../../services/platform/database/Database.ts"
import { TestDatabase } from "../../../support/TestDatabase.ts"

/** Whether the effect failed; a defect or an interruption fails the test. */
const failures = <A, E>(exit: Exit.Exit<A, E>) => {
  assert.isTrue(Exit.isFailure(exit))
  return (Exit.isFailure(exit) ? exit.cause.reasons : []).map((reason) =>
    Cause.isFailReason(reason) ? reason.error : assert.fail(`a ${reason._tag}`)
  )
}

layer(TestDatabase.layer, { excludeTestServices: true })("Database", (it) => {
  const cut = Effect.flatMap(Database, ({ sql }) => sql`select pg_terminate_backend(pg_backend_pid())`)

  it.effect("a transaction whose connection is lost fails, and the next one succeeds", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const [failure] = failures(yield* Effect.exit(sql.withTransaction(cut)))
      assert.isTrue(SqlError.isSqlError(failure))
      assert.deepStrictEqual(yield* sql.withTransaction(sql`select 1 as one`), [{ one: 1 }])
    }))

  it.effect("a transaction that had failed before its connection was lost fails, and the next one succeeds", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const refused = Effect.andThen(Effect.ignore(cut), Effect.fail("refused"))
      const found = failures(yield* Effect.exit(sql.withTransaction(refused)))
      assert.isTrue(found.length === 1 && SqlError.isSqlError(found[0]), String(found))
    }))

  it.effect("a commit whose connection is lost fails", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const [failure] = failures(yield* Effect.exit(sql.withTransaction(Effect.ignore(cut))))
      assert.isTrue(SqlError.isSqlError(failure))
    }))

  it.effect("a connection keeps at most 100 prepared statements", () =>
    Effect.gen(function* () {
      const { reads, sql } = yield* Database
      const texts = Array.from({ length: 300 }, (_, n) => n)
      const prepared = (client: typeof sql) =>
        Effect.map(
          client<{ n: number }>`select count(*)::int as n from pg_prepared_statements`,
          ([row]) => row!.n,
        )
      const kept = yield* sql.withTransaction(Effect.andThen(
        Effect.forEach(texts, (n) => sql`select ${n}::int as ${sql.literal(`c${n}`)}`),
        prepared(sql),
      ))
      assert.isAbove(kept, 50)
      assert.isAtMost(kept, 101, "and the one that is just asked for")
      yield* Effect.forEach(texts, (n) => reads`select ${n}::int as ${reads.literal(`c${n}`)}`, { concurrency: 16 })
      for (let n = 0; n < 8; n++) assert.isAtMost(yield* prepared(reads), 101)
    }))

  it.effect("a defect that is not a lost connection stays a defect", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const exit = yield* Effect.exit(sql.withTransaction(Effect.die("a fault of ours")))
      assert.isTrue(Exit.isFailure(exit) && Cause.hasDies(exit.cause))
    }))
})
