import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { AuditLog } from "../../../../services/platform/observability/AuditLog.ts"
import { AuditPartitions } from "../../../../services/platform/observability/AuditPartitions.ts"
import type { AuditFilter } from "../../../../services/platform/observability/AuditRecord.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import { leastIdAt } from "../../../../services/platform/Ids.ts"
import { rowsRead } from "../../../support/RowsRead.ts"
import { TestDatabase } from "../../../support/TestDatabase.ts"
import { stoppedClock } from "../../webhooks/WebhookFixture.ts"

const clock = stoppedClock()
const january = Date.parse("2026-01-10T00:00:00Z")
const february = Date.parse("2026-02-10T00:00:00Z")
const rows = 30_000

/** In each of two months 30,000 records a millisecond apart; every 10,000th of one person. */
const fill = (from: number) =>
  Effect.flatMap(Database, ({ owner }) => {
    const records = Array.from({ length: rows }, (_, i) => ({
      id: leastIdAt(from + i),
      at: new Date(from + i),
      actor: i % 10_000 === 77 ? "person:sam" : `account:a${i % 100}`,
      subject: `webhook:w${i % 1_000}`,
      outcome: i === 5 ? "failed" : "done",
      code: i === 5 ? "internal_error" : null,
      request_id: `r${from + i}`,
      details: i === 123 ? { project: "p123" } : {},
    }))
    return owner`
      insert into audit_records (id, at, action, outcome, code, actor, subject, request_id, details)
      select id, at, 'a.done', outcome, code, actor, subject, request_id, details
      from json_to_recordset(${JSON.stringify(records)}::json) r(id uuid, at timestamptz, actor text, subject text,
        outcome text, code text, request_id text, details jsonb)`
  })

const newest = (filter: AuditFilter, limit: number, afterId?: string) =>
  Effect.map(
    Effect.flatMap(AuditLog, (log) => log.newest(filter, limit, afterId)),
    ({ nextAfterId, records }) => ({ times: records.map(({ at }) => at.getTime()), next: nextAfterId }),
  )

/** Times of all pages, and how many pages there were. */
const walked = Effect.fnUntraced(function* (filter: AuditFilter, limit: number) {
  const times: Array<number> = []
  let pages = 0
  let after: string | undefined
  while (true) {
    const page = yield* newest(filter, limit, after)
    pages++
    times.push(...page.times)
    if (page.next === null) return { times, pages }
    assert.isTrue(after === undefined || page.next < after, "a cursor goes on")
    after = page.next
  }
})

layer(
  AuditPartitions.layer({ auditDays: 400 }).pipe(
    Layer.provideMerge(AuditLog.layer),
    Layer.provideMerge(Layer.fresh(TestDatabase.layer)),
    Layer.provideMerge(clock.layer),
  ),
  { excludeTestServices: true, timeout: "2 minutes" },
)("the newest records of the audit", (it) => {
  it.effect("come in pages, by every filter, over months", () =>
    Effect.gen(function* () {
      const { owner, wide } = yield* Database
      yield* clock.set(january)
      yield* Effect.flatMap(AuditPartitions, (audit) => audit.upkeep)
      yield* fill(january)
      yield* clock.set(february)
      yield* Effect.flatMap(AuditPartitions, (audit) => audit.upkeep)
      yield* fill(february)
      yield* owner`analyze audit_records`

      const page = yield* newest({}, 3)
      assert.deepStrictEqual(page.times, [3, 2, 1].map((n) => february + rows - 4 + n))
      assert.deepStrictEqual((yield* newest({}, 2, page.next!)).times, [february + rows - 4, february + rows - 5])

      const sam = [20_077, 10_077, 77].flatMap((n) => [february + n]).concat(
        [20_077, 10_077, 77].map((n) => january + n),
      )
      for (const limit of [1, 4, 100]) {
        assert.deepStrictEqual((yield* walked({ actor: "person:sam" }, limit)).times, sam)
      }
      assert.deepStrictEqual((yield* newest({ actor: "person:sam", since: february }, 10)).times, sam.slice(0, 3))
      assert.deepStrictEqual((yield* newest({ actor: "person:sam", until: february }, 10)).times, sam.slice(3))

      const webhook = yield* walked({ subject: "webhook:w5", until: january + rows }, 7)
      assert.deepStrictEqual(webhook.times, Array.from({ length: 30 }, (_, n) => january + 29_005 - n * 1_000))
      assert.deepStrictEqual(
        (yield* walked({ subject: "w5", outcome: "failed", code: "internal_error" }, 7)).times,
        [february + 5, january + 5],
      )
      assert.deepStrictEqual((yield* walked({ subject: "project:p123" }, 7)).times, [february + 123, january + 123])
      assert.deepStrictEqual((yield* newest({ requestId: `r${january + 9}` }, 7)).times, [january + 9])
      assert.deepStrictEqual((yield* newest({ requestId: `r${january + 9}`, subject: "w8" }, 7)).times, [])
      assert.deepStrictEqual((yield* newest({ action: "a.other", since: february + 20_000 }, 7)).times, [])

      // A rare record is found over short and empty pages: 60,000 records in pages of 20,000.
      const rare = yield* walked({ code: "internal_error" }, 50)
      assert.deepStrictEqual(rare, { times: [february + 5, january + 5], pages: 4 })

      // By index: of 60,000 records few are read.
      for (
        const [filter, most] of [
          [{}, 60],
          [{ actor: "person:sam" }, 60],
          [{ subject: "webhook:w5" }, 200],
          [{ requestId: `r${january + 9}` }, 60],
          [{ code: "internal_error" }, 60_000],
        ] as const
      ) {
        const [read] = yield* rowsRead(wide, newest(filter, 10))
        const sum = [...read].reduce((n, [table, count]) => table.startsWith("audit_records") ? n + count : n, 0)
        assert.isAtMost(sum, most, JSON.stringify(filter))
      }
    }))
})
