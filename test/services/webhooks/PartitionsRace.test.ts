/** Rows move into a day's partition while others write to them. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Fiber, Latch } from "effect"
import { Database } from "../../../services/platform/database/Database.ts"
import { Ids } from "../../../services/platform/Ids.ts"
import { Partitions } from "../../../services/webhooks/Partitions.ts"
import { until } from "../../e2e/support/Until.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

/** Statements that wait for a lock in this database. */
const waiting = Effect.gen(function* () {
  const { sql } = yield* Database
  const [row] = yield* sql<{ n: number }>`
    select count(*)::int as n from pg_locks l where not l.granted
      and l.database = (select oid from pg_database where datname = current_database())`
  return row!.n
})

describe("partitions", () => {
  it.live("are created under traffic without losing a write", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const { upkeep } = yield* Partitions
      const now = new Date(yield* Clock.currentTimeMillis)
      const [id, other] = yield* (yield* Ids).batch(2)
      yield* sql`
        insert into deliveries (id, webhook_id, account_id, event_id, event_type, status, cycle, attempt, created_at)
        values (${id!}, ${other!}, ${other!}, ${other!}, 'email.sent', 'pending', 1, 1, ${now})`

      // A lock that the upkeep needs last is kept until it has moved the rows and the write has begun.
      const locked = Latch.makeUnsafe(false)
      const over = Latch.makeUnsafe(false)
      const holder = yield* Effect.forkChild(
        sql`lock table attempts in share mode`.pipe(
          Effect.andThen(locked.open),
          Effect.andThen(over.await),
          sql.withTransaction,
        ),
      )
      yield* locked.await
      const made = yield* Effect.forkChild(upkeep)
      yield* until("upkeep waits", waiting, (n) => n === 1)
      const write = sql`update deliveries set status = 'delivered' where id = ${id!}::uuid returning id`
      const written = yield* Effect.forkChild(write)
      const begun = Effect.all([waiting, Effect.sync(() => written.pollUnsafe())])
      yield* until("the write waits or is over", begun, ([n, exit]) => n === 2 || exit !== undefined)
      yield* over.open
      yield* Effect.all([Fiber.join(holder), Fiber.join(made)])
      assert.strictEqual((yield* Fiber.join(written)).length, 1)
      const [row] = yield* sql<{ status: string; part: string }>`
        select status, tableoid::regclass::text as part from deliveries where id = ${id!}::uuid`
      assert.strictEqual(row!.status, "delivered")
      assert.match(row!.part, /^deliveries_p\d{8}$/)
    }).pipe(
      Effect.provide(Partitions.layer({ deliveredDays: 30, deadLetterDays: 90, intakeMemoryDays: 400 })),
      Effect.provide(TestDatabase.layer),
    ))
})
