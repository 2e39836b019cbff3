import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { Database } from "../../../services/platform/Database.ts"
import { manyProcesses } from "../../../src/actors/Cluster.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

layer(TestDatabase.layer, { excludeTestServices: true, timeout: "2 minutes" })("a process of a cluster", (it) => {
  it.effect("that starts while another does waits its turn, for longer than a statement waits for a lock", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const { url } = yield* TestDatabase
      const held = yield* Deferred.make<void>()
      const starting = yield* Effect.forkChild(Effect.andThen(
        Deferred.await(held),
        Effect.scoped(Layer.build(manyProcesses({ url, address: null }))),
      ))
      const turns = new Set<number>()
      yield* sql.withTransaction(Effect.gen(function* () {
        yield* sql`select pg_advisory_xact_lock(hashtext('bailiwick cluster'))`
        yield* Deferred.succeed(held, undefined)
        // Until it has asked for a second time, or has given up.
        while (turns.size < 2 && starting.pollUnsafe() === undefined) {
          const waiting = yield* sql<{ since: Date | null }>`
            select waitstart as since from pg_locks where locktype = 'advisory' and not granted
              and database = (select oid from pg_database where datname = current_database())`
          for (const { since } of waiting) if (since !== null) turns.add(since.getTime())
          yield* Effect.sleep("20 millis")
        }
      }))
      yield* Fiber.join(starting)
      assert.strictEqual(turns.size, 2)
    }))
})
