/** Tests of the test harness itself. */
import { assert, layer } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { Database } from "../../services/platform/database/Database.ts"
import { TestDatabase } from "./TestDatabase.ts"

layer(TestDatabase.layer, { excludeTestServices: true })("TestDatabase", (it) => {
  it.effect("gives a migrated database to a role that is not its owner", () =>
    Effect.gen(function* () {
      const { sql, owner } = yield* Database
      const [app] = yield* sql<{ role: string; database: string }>`
        select current_user::text as role, current_database()::text as database`
      const [own] = yield* owner<{ role: string }>`select current_user::text as role`
      assert.deepStrictEqual(app, { role: "bailiwick_app", database: (yield* TestDatabase).name })
      assert.strictEqual(own?.role, "bailiwick_owner")
      const refused = yield* Effect.exit(sql`delete from audit_records`)
      assert.isTrue(Exit.isFailure(refused))
    }))

  it.effect("gives each test file a database of its own and drops it with its connections", () =>
    Effect.gen(function* () {
      const { owner } = yield* Database
      const scope = yield* Scope.make()
      const [one, two] = yield* Effect.all([TestDatabase.make, TestDatabase.make], { concurrency: 2 }).pipe(
        Scope.provide(scope),
      )
      assert.notStrictEqual(one.name, two.name)
      const exists = owner`select datname from pg_database where datname in (${one.name}, ${two.name})`
      assert.strictEqual((yield* exists).length, 2)
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual((yield* exists).length, 0)
    }))
})
