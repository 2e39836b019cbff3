/** Signed history of a version that had one key goes on under rotating keys. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import keys from "../../migrations/0017_keys.ts"
import lifecycle from "../../migrations/0015_lifecycle.ts"
import { Database } from "../../services/platform/database/Database.ts"
import { TestDatabase } from "../support/TestDatabase.ts"

layer(Layer.fresh(TestDatabase.layer), { excludeTestServices: true })("migration of keys", (it) => {
  it.effect("keeps the order in which keys were made, and gives every signed project the one that signed", () =>
    Effect.gen(function* () {
      const { owner } = yield* Database
      yield* Effect.gen(function* () {
        yield* owner`create schema before`
        yield* owner`set local search_path = before`
        yield* lifecycle
        yield* owner`
          insert into signing_keys (kid, state, public_jwk, private_key, vault_kid, created_at, changed_at)
          select kid, state, '{}', '\\x00', 'k1', 'epoch', 'epoch'
          from (values ('a', 'announced'), ('z', 'active'), ('b', 'announced')) k(kid, state)`
        yield* owner`insert into lifecycle_signed values ('p1', 1, 7), ('p2', 2, 1)`
        yield* keys
        assert.deepStrictEqual(
          (yield* owner<{ kid: string }>`select kid from signing_keys order by succession`).map(({ kid }) => kid),
          ["z", "a", "b"],
        )
        assert.deepStrictEqual(
          yield* owner`
            select p.project_id, p.kid, p.news_id::int as news, a.kid as signs, a.position::int as since
            from lifecycle_project_keys p join lifecycle_key_places a using (project_id) order by 1`,
          ["p1", "p2"].map((project_id) => ({ project_id, kid: "z", news: 0, signs: "z", since: 0 })),
        )
      }).pipe(Effect.provideService(SqlClient.SqlClient, owner), owner.withTransaction)
    }))
})
