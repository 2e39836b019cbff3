/** An object's audit records are found by index, month by month, also records that name it in `details` only. */
import { assert, layer } from "@effect/vitest"
import { Effect, Exit, Layer, Stream } from "effect"
import { AuditLog } from "../../../../services/platform/observability/AuditLog.ts"
import { AuditPartitions } from "../../../../services/platform/observability/AuditPartitions.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import { leastIdAt } from "../../../../services/platform/Ids.ts"
import { TestDatabase } from "../../../support/TestDatabase.ts"
import { stoppedClock } from "../../webhooks/WebhookFixture.ts"

const clock = stoppedClock()
const january = Date.parse("2026-01-10T00:00:00Z")
const february = Date.parse("2026-02-10T00:00:00Z")
const rows = 6_000

const fill = (from: number) =>
  Effect.flatMap(Database, ({ owner }) => {
    const records = Array.from({ length: rows }, (_, i) => ({
      id: leastIdAt(from + i),
      at: new Date(from + i),
      subject: `account:a${i}`,
      details: { transfer_id: `t${i}`, project: `p${i}`, request_ids: [`r${i}`] },
    }))
    return owner`
      insert into audit_records (id, at, action, outcome, subject, details)
      select id, at, 'a.done', 'done', subject, details
      from json_to_recordset(${JSON.stringify(records)}::json) r(id uuid, at timestamptz, subject text, details jsonb)`
  })

const upkeep = Effect.flatMap(AuditPartitions, (audit) => audit.upkeep)

const seen = (subject: string, since?: number) =>
  Effect.flatMap(
    AuditLog,
    (log) =>
      Effect.map(Stream.runCollect(log.read({ subject, since })), (found) => found.map(({ at }) => at.getTime())),
  )

/** Rows that sequential scans of the audit have read so far, by the server's counts of each partition. */
const scanned = Effect.gen(function* () {
  const { owner, wide } = yield* Database
  // A session reports its counts once idle, or when asked.
  for (const session of [wide, owner]) yield* session`select pg_stat_force_next_flush()`
  yield* owner`select pg_stat_clear_snapshot()`
  const [row] = yield* owner<{ n: bigint }>`
    select coalesce(sum(seq_tup_read), 0)::bigint as n from pg_stat_user_tables where relname like 'audit_records%'`
  return Number(row!.n)
})

layer(
  AuditPartitions.layer({ auditDays: 400 }).pipe(
    Layer.provideMerge(AuditLog.layer),
    Layer.provideMerge(Layer.fresh(TestDatabase.layer)),
    Layer.provideMerge(clock.layer),
  ),
  { excludeTestServices: true },
)("the audit of an object", (it) => {
  it.effect("is read by index in months older than the indexes, and in later ones", () =>
    Effect.gen(function* () {
      const { owner } = yield* Database
      yield* clock.set(january)
      yield* upkeep
      // As versions without these indexes left it, and a version that was cut off while it built one.
      yield* owner`drop index audit_records_details, audit_records_object`
      yield* fill(january)
      yield* clock.set(february)
      yield* fill(february)
      const cut = yield* Effect.exit(
        owner`create unique index concurrently audit_records_p202601_details on audit_records_p202601 ((1))`,
      )
      assert.isTrue(Exit.isFailure(cut))
      const [half] = yield* owner`
        select indisvalid as valid from pg_index where indexrelid = 'audit_records_p202601_details'::regclass`
      assert.deepStrictEqual(half, { valid: false })
      yield* Effect.all([upkeep, upkeep])
      const indexes = yield* owner<{ name: string; valid: boolean; children: number }>`
        select c.relname as name, i.indisvalid as valid,
          (select count(*)::int from pg_inherits h where h.inhparent = c.oid) as children
        from pg_index i join pg_class c on c.oid = i.indexrelid
        where c.relname in ('audit_records_details', 'audit_records_object') order by 1`
      const children = 1 + 4
      assert.deepStrictEqual(indexes, [
        { name: "audit_records_details", valid: true, children },
        { name: "audit_records_object", valid: true, children },
      ])
      yield* owner`analyze audit_records`

      const before = yield* scanned
      const both = [january + 77, february + 77]
      for (const subject of ["transfer:t77", "project:p77", "account:a77", "t77", "p77", "a77"]) {
        assert.deepStrictEqual(yield* seen(subject), both, subject)
        assert.deepStrictEqual(yield* seen(subject, february), both.slice(1), subject)
      }
      assert.deepStrictEqual(yield* seen("transfer:t"), [])
      assert.deepStrictEqual(yield* seen("r77"), [], "a request is found by --request-id")
      assert.isBelow((yield* scanned) - before, rows, "records that were read one after another")
    }))

  it.effect("is read by every condition, over many pages", () =>
    Effect.gen(function* () {
      const { owner } = yield* Database
      const log = yield* AuditLog
      const march = Date.parse("2026-03-10T00:00:00Z")
      yield* clock.set(march)
      yield* upkeep
      yield* fill(march)
      const at = [march + 700, march + 5_500]
      yield* owner`
        update audit_records set actor = 'person:p', action = 'b.done', outcome = 'refused', code = 'role_required'
        where at in ${owner.in(at.map((one) => new Date(one)))}`
      const times = (filter: Omit<Parameters<typeof log.read>[0], "since">) =>
        Effect.map(
          Stream.runCollect(log.read({ since: march - 1, ...filter })),
          (found) => found.map((record) => record.at.getTime()),
        )
      for (
        const filter of [
          { actor: "person:p" },
          { action: "b.done" },
          { outcome: "refused" },
          { code: "role_required" },
        ] as const
      ) {
        assert.deepStrictEqual(yield* times(filter), at, JSON.stringify(filter))
        assert.deepStrictEqual(yield* times({ ...filter, until: at[1] }), at.slice(0, 1), JSON.stringify(filter))
      }
      assert.deepStrictEqual(yield* times({ actor: "person:p", code: "other" }), [])
      assert.lengthOf(yield* times({ until: march + 1_200 }), 1_200)
    }))
})
