/** A real new timeline: a server recovered from the files of another one goes on on a timeline of its own. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Layer, Scope } from "effect"
import { appendFileSync, chownSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { ensureEpoch } from "../../../services/lifecycle/Epochs.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { readInstallation } from "../../../services/platform/database/Installation.ts"
import * as EmbeddedPostgres from "../../../src/embedded/EmbeddedPostgres.ts"
import { locate } from "../../../src/embedded/PostgresData.ts"
import { migrate } from "../../../src/Migrations.ts"
import { until } from "../../e2e/support/Until.ts"
import { home as emptyHome } from "../../support/Processes.ts"

describe("a promoted server", () => {
  it.live(
    "is told from the old one by its timeline; a restarted server is the same one",
    () =>
      Effect.gen(function* () {
        const home = yield* emptyHome

        /** One run of the server, from start to stop. */
        const life = <A, E>(use: Effect.Effect<A, E, Database>) =>
          Effect.gen(function* () {
            const scope = yield* Scope.make()
            const { appUrl, ownerUrl } = yield* EmbeddedPostgres.start({ home }).pipe(Scope.provide(scope))
            const database = Database.layer({ url: appUrl, ownerUrl, maxConnections: 2 })
            return yield* use.pipe(
              Effect.provide(Layer.fresh(database)),
              Effect.ensuring(Scope.close(scope, Exit.void)),
            )
          })
        const look = Effect.gen(function* () {
          const { sql } = yield* Database
          yield* until(
            "the end of recovery",
            sql<{ ended: boolean }>`select not pg_is_in_recovery() as ended`,
            ([row]) => row!.ended,
          )
          const begun = yield* ensureEpoch(sql)
          const [row] = yield* sql<{ timeline: string; epoch: number; state: string }>`
          select timeline_id as timeline, epoch, state from installation`
          return { begun, ...row! }
        })

        const first = yield* life(Effect.andThen(migrate, look))
        assert.deepStrictEqual(first, { begun: false, timeline: "00000001", epoch: 1, state: "open" })
        assert.deepStrictEqual(yield* life(look), first)

        const data = (yield* locate(home)).pipe((found) => found._tag === "Some" ? found.value : "")
        const { gid, uid } = statSync(data)
        const signal = join(data, "recovery.signal")
        writeFileSync(signal, "")
        chownSync(signal, uid, gid)
        appendFileSync(join(data, "postgresql.auto.conf"), "restore_command = 'false'\n")

        const promoted = yield* life(look)
        assert.deepStrictEqual(promoted, { begun: true, timeline: "00000002", epoch: 2, state: "held" })
        assert.deepStrictEqual(yield* life(look), { ...promoted, begun: false })
        const told = yield* life(Effect.flatMap(Database, ({ sql }) => readInstallation(sql)))
        assert.deepInclude(told, { held_reason: "failed_over" })
      }),
    120_000,
  )
})
