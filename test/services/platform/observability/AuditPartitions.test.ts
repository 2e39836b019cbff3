/** The audit's monthly partitions: made ahead and dropped whole; records that evidence names outlive their month. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { Audit } from "../../../../services/platform/observability/Audit.ts"
import { AuditLog } from "../../../../services/platform/observability/AuditLog.ts"
import { AuditPartitions } from "../../../../services/platform/observability/AuditPartitions.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import { migrate } from "../../../../src/Migrations.ts"
import { TestDatabase } from "../../../support/TestDatabase.ts"
import { stoppedClock } from "../../webhooks/WebhookFixture.ts"

const upkeep = Effect.flatMap(AuditPartitions, (audit) => audit.upkeep)

const partitions = Effect.gen(function* () {
  const { owner } = yield* Database
  const rows = yield* owner<{ name: string }>`
    select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'audit_records'::regclass order by 1`
  return rows.map(({ name }) => name.replace("audit_records_", ""))
})

const append = Effect.fnUntraced(function* (action: string, subject: string) {
  const audit = yield* Audit
  const [id] = yield* audit.append({ action, actor: "person:one", subject, outcome: "done" })
  return id!
})

// Real sleeps: a TestClock that jumps months would run every loop of the pools through all of them.
const clock = stoppedClock()
const at = (time: string) => clock.set(Date.parse(time))

const all = Effect.gen(function* () {
  const log = yield* AuditLog
  return (yield* Stream.runCollect(log.read({}))).map(({ id }) => id)
})

layer(
  AuditPartitions.layer({ auditDays: 90 }).pipe(
    Layer.provideMerge(AuditLog.layer),
    Layer.provideMerge(Audit.layer),
    Layer.provideMerge(Layer.fresh(TestDatabase.layer)),
    Layer.provideMerge(clock.layer),
  ),
  { excludeTestServices: true },
)("the audit's months", (it) => {
  it.effect("are made two ahead, take in earlier records, and are dropped once their last record is too old", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      yield* at("2026-01-20T12:00:00Z")
      const first = yield* append("api-key.created", "api-key:1")
      yield* upkeep
      const made = ["default", "p202601", "p202602", "p202603"]
      assert.deepStrictEqual(yield* partitions, made)
      const [row] = yield* sql`select tableoid::regclass::text as part from audit_records where id = ${first}::uuid`
      assert.deepStrictEqual(row, { part: "audit_records_p202601" })

      const decided = [
        yield* append("access-review.propose", "access-review:1"),
        yield* append("access-review.approve", "access-review:1"),
      ]
      yield* at("2026-01-31T23:59:59.999Z")
      const last = yield* append("api-key.revoked", "api-key:1")
      yield* at("2026-02-01T00:00:00Z")
      const next = yield* append("api-key.created", "api-key:2")
      yield* Effect.all([upkeep, upkeep, upkeep], { concurrency: "unbounded" })
      assert.deepStrictEqual(yield* partitions, [...made, "p202604"])

      // The last record of January reaches 90 days in a millisecond.
      yield* at("2026-05-01T23:59:59.999Z")
      yield* upkeep
      assert.include(yield* partitions, "p202601")
      assert.deepStrictEqual(yield* all, [first, ...decided, last, next])

      yield* at("2026-05-02T00:00:00Z")
      yield* upkeep
      assert.deepStrictEqual(yield* partitions, [
        ...["default", "p202602", "p202603", "p202604", "p202605", "p202606", "p202607"],
      ])
      assert.deepStrictEqual(yield* all, [...decided, next])

      // Evidence is not lost later on either, and other late records do not stay.
      const { owner } = yield* Database
      yield* owner`
        insert into audit_records (id, at, action, outcome)
        values ('019b0000-0000-7000-8000-000000000000', '2025-12-08', 'webhook.created', 'done')`
      assert.lengthOf(yield* all, 4)
      yield* at("2027-03-01T00:00:00Z")
      yield* upkeep
      assert.deepStrictEqual(yield* all, decided)
      assert.deepStrictEqual(yield* partitions, ["default", "p202703", "p202704", "p202705"])
    }))

  it.effect("the program's role cannot change a record, in the table or in a partition", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      // Each start grants the role its rights anew.
      yield* migrate
      for (const table of ["audit_records", "audit_records_default", "audit_records_p202703"]) {
        for (const statement of [`delete from ${table}`, `update ${table} set actor = 'me'`, `truncate ${table}`]) {
          const refused = yield* Effect.flip(sql.unsafe(statement))
          assert.strictEqual(refused.reason._tag, "AuthorizationError", statement)
        }
      }
    }))
})
