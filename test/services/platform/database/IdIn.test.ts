import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { Statement } from "effect/sql"
import { randomUUID } from "node:crypto"
import { Database } from "../../../../services/platform/database/Database.ts"
import { idIn } from "../../../../services/platform/database/IdIn.ts"
import { TestDatabase } from "../../../support/TestDatabase.ts"

layer(TestDatabase.layer)("idIn", (it) => {
  it.effect("finds the rows of no id, of one and of several, by uuid and by text", () =>
    Effect.gen(function* () {
      const { owner } = yield* Database
      const ids = Array.from({ length: 5 }, () => randomUUID()).sort()
      yield* owner`create table named (id uuid primary key, name text not null)`
      yield* owner`insert into named select id, 'of ' || id from unnest(${ids}::uuid[]) id`
      const found = (condition: Statement.Fragment) =>
        Effect.map(
          owner<{ id: string }>`select t.id::text as id from named t where ${condition} order by t.id`,
          (rows) => rows.map(({ id }) => id),
        )
      for (const some of [[], ids.slice(2, 3), ids.slice(1, 4)]) {
        assert.deepStrictEqual(yield* found(idIn(owner, "t.id", "uuid", some)), some)
        assert.deepStrictEqual(yield* found(idIn(owner, "name", "text", some.map((id) => `of ${id}`))), some)
        const others = ids.filter((id) => !some.includes(id))
        assert.deepStrictEqual(yield* found(owner`not (${idIn(owner, "id", "uuid", some)})`), others)
      }
    }))

  it.effect("the plan for one id is kept; of an array of one it would be made at each execution", () =>
    Effect.gen(function* () {
      const { owner } = yield* Database
      yield* owner`create table planned (id text primary key, state text not null)`
      yield* owner`insert into planned select n::text, 'open' from generate_series(1, 20000) n`
      yield* owner`analyze planned`
      const plansOf = (name: string, condition: Statement.Fragment) =>
        Effect.gen(function* () {
          for (let n = 0; n < 10; n++) yield* owner`select from planned as ${owner(name)} where ${condition}`
          const [plans] = yield* owner<{ kept: number }>`
            select generic_plans::int as kept from pg_prepared_statements where statement like ${`%"${name}"%`}`
          return plans!.kept
        })
      const [one, array] = yield* Effect.all([
        plansOf("by_id", idIn(owner, "id", "text", ["77"])),
        plansOf("by_array", owner`id = any(${["77"]}::text[])`),
      ]).pipe(owner.withTransaction)
      assert.isAbove(one, 0)
      assert.strictEqual(array, 0)
    }))
})
