/** The end of an upgrade: the schema admits no program before this one, and never will again. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { finishUpgrade } from "../../../services/operations/FinishUpgrade.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { isClosedToOlder } from "../../../services/platform/database/OlderPrograms.ts"
import { refusalOf, schemaVersion } from "../../../services/platform/database/VersionFence.ts"
import { Audit } from "../../../services/platform/observability/Audit.ts"
import { newest } from "../../../src/Migrations.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

layer(Audit.layer.pipe(Layer.provideMerge(TestDatabase.layer)), { excludeTestServices: true })(
  "FinishUpgrade",
  (it) => {
    it.effect("closes the schema to older programs once it is migrated, once, with a record", () =>
      Effect.gen(function* () {
        const { owner, sql } = yield* Database
        const finish = (version: number) => finishUpgrade(version, "all are replaced")
        assert.strictEqual(yield* finish(newest + 1), "not migrated")
        assert.isFalse(yield* isClosedToOlder(sql, newest))
        assert.isNull(refusalOf(newest - 1, { ...(yield* schemaVersion), applied: newest - 1 }))
        assert.strictEqual(yield* finish(newest), "closed")
        assert.strictEqual(yield* finish(newest), "closed before")
        // A program of before may have work in hand.
        assert.isFalse(yield* isClosedToOlder(sql, newest))
        yield* owner`update schema_meta set closed_at = closed_at - interval '62 seconds'`
        assert.isTrue(yield* isClosedToOlder(sql, newest))
        assert.isNull(refusalOf(newest, yield* schemaVersion))
        assert.match(refusalOf(newest - 1, yield* schemaVersion)!, /too new for this program/)
        const audited = yield* sql`select details from audit_records where action = 'upgrade.finished'`
        assert.deepStrictEqual(audited, [{ details: { reason: "all are replaced", version: newest } }])
      }))
  },
)
