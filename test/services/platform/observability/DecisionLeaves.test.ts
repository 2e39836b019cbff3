import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Audit, type AuditEntry } from "../../../../services/platform/observability/Audit.ts"
import type { AuditRecord } from "../../../../services/platform/observability/AuditRecord.ts"
import { entryOf } from "../../../../services/platform/observability/DecisionLeaf.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import { run } from "../../../../services/platform/database/UnitOfWork.ts"
import { counting } from "../../../support/Statements.ts"
import { TestDatabase } from "../../../support/TestDatabase.ts"

const entry = (more: Partial<AuditEntry> = {}): AuditEntry => ({
  action: "service-grant.approved",
  actor: "person:ada",
  subject: "service-grant:1",
  outcome: "done",
  details: { project: "fern-portal", n: 1.5, none: null, text: "für \u{1f33f}" },
  ...more,
})

interface Leaf {
  readonly record_id: string
  readonly salt: Uint8Array
  readonly digest: Uint8Array
}

const leaves = Effect.flatMap(Database, ({ sql }) => sql<Leaf>`select record_id, salt, digest from log_pending`)

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex")

layer(Layer.fresh(Audit.layer.pipe(Layer.provideMerge(TestDatabase.layer))), { excludeTestServices: true })(
  "Leaves of decisions",
  (it) => {
    it.effect("the record of a decision, as the audit has it, fits the leaf that was written with it", () =>
      Effect.gen(function* () {
        const audit = yield* Audit
        const { sql } = yield* Database
        const [id] = yield* audit.append(entry({ decision: true }))
        const [record] = yield* sql<AuditRecord>`
          select id::text, at, request_id, route, action, actor, subject, outcome, status, code, details
          from audit_records where id = ${id!}::uuid`
        const leaf = (yield* leaves).find(({ record_id }) => record_id === id)!
        const evidence = { ...record!, at: record!.at.toISOString() }
        assert.strictEqual(hex(leaf.digest), hex(entryOf(evidence, leaf.salt)))
        assert.notStrictEqual(hex(leaf.digest), hex(entryOf({ ...evidence, actor: "person:eve" }, leaf.salt)))
        assert.notStrictEqual(hex(leaf.digest), hex(entryOf(evidence, new Uint8Array(16))))
      }))

    it.effect("two equal records have leaves that do not show it", () =>
      Effect.gen(function* () {
        const audit = yield* Audit
        const ids = yield* audit.append(entry({ decision: true }), entry({ decision: true }))
        const own = (yield* leaves).filter(({ record_id }) => ids.includes(record_id))
        assert.strictEqual(new Set(own.map(({ salt }) => hex(salt))).size, 2)
        assert.strictEqual(new Set(own.map(({ digest }) => hex(digest))).size, 2)
      }))

    it.effect("a record of something else has no leaf", () =>
      Effect.gen(function* () {
        const audit = yield* Audit
        const ids = yield* audit.append(entry(), entry({ decision: false }), entry({ decision: true }))
        const own = (yield* leaves).map(({ record_id }) => record_id).filter((id) => ids.includes(id))
        assert.deepStrictEqual(own, [ids[2]])
      }))

    it.effect("a leaf costs no statement of its own, and is gone where the decision is", () =>
      Effect.gen(function* () {
        const audit = yield* Audit
        const { sql } = yield* Database
        const count = Effect.map(sql`select from log_pending`, ({ length }) => length)
        const before = yield* count
        const written = (decision: boolean) => counting(run(audit.append(entry({ decision }))))
        const [plain] = yield* written(false)
        const [decided] = yield* written(true)
        assert.strictEqual(decided, plain)
        const [alone] = yield* counting(audit.append(entry({ decision: true })))
        assert.strictEqual(alone, 1)
        assert.strictEqual(yield* count, before + 2)
        yield* Effect.exit(run(Effect.andThen(audit.append(entry({ decision: true })), Effect.die("no"))))
        assert.strictEqual(yield* count, before + 2)
      }))
  },
)
