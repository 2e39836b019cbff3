import { assert, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { randomUUID } from "node:crypto"
import { WebhookId } from "../../../schemas/BrandedIds.ts"
import { Queues as QueueReport, WebhookBacklogs } from "../../../schemas/identity/QueueView.ts"
import { queueRates } from "../../../services/operations/QueueRates.ts"
import { Queues } from "../../../services/operations/Queues.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { rowsRead } from "../../support/RowsRead.ts"
import { webhook } from "../../support/TestDeadLetters.ts"
import { person } from "../../support/TestIdentity.ts"
import { management } from "../../support/TestManagement.ts"
import { bearer } from "../../support/TestTokens.ts"
import { send } from "../../src/http/identity/IdentityClient.ts"

const queuesOf = Schema.decodeUnknownSync(QueueReport)
const backlogsOf = Schema.decodeUnknownSync(WebhookBacklogs)

const past = new Date(Date.now() - 3_600_000)
const future = new Date(Date.now() + 3_600_000)

/** So many deliveries of a webhook in the queue. */
const queue = Effect.fnUntraced(function* (id: string, n: number, attempt: number, due: Date, claim: number | null) {
  const { owner } = yield* Database
  yield* owner`
    insert into delivery_queue (delivery_id, webhook_id, account_id, event_id, cycle, attempt, due_at, claim, lease_until)
    select gen_random_uuid(), ${id}::uuid, ${id}::uuid, gen_random_uuid(), 1, ${attempt}::int, ${due}::timestamptz,
      ${claim}::bigint, case when ${claim}::bigint is not null then ${future}::timestamptz end
    from generate_series(1, ${n}::int)`
})

/**
 * Attempts, published messages and sent mails: as many in the last full minute as in the one that becomes it while the
 * test runs, and others in the minutes beside them.
 */
const done = Effect.fnUntraced(function* (hook: string) {
  const { owner } = yield* Database
  const minute = (Math.floor((Date.now() - 5_000) / 60_000) - 1) * 60_000
  for (const [offset, times] of [[-1, 7], [30_000, 1], [90_000, 1], [120_000, 7]] as const) {
    const at = new Date(minute + offset)
    yield* owner`
      insert into delivery_minutes (webhook_id, minute, outcome, n, ms_sum, ms_max)
      select ${hook}::uuid, date_trunc('minute', ${at}::timestamptz), o, n * ${times}::int, 1, 1
      from (values ('delivered', 90), ('failed', 7)) v(o, n)`
    yield* owner`
      insert into outbox (id, stream, subject, payload, created_at, published_at, not_before)
      select gen_random_uuid(), 'NOTIFICATIONS', 'x', '{}', ${at}::timestamptz, ${at}::timestamptz, ${at}::timestamptz
      from generate_series(1, ${5 * times}::int)`
    yield* owner`
      insert into mails (id, kind, subject_id, recipient, args, state, created_at, ended_at)
      select gen_random_uuid(), 'x', 'x', 'x', '{}', case when n < 4 then 'sent' else 'dropped' end,
        ${at}::timestamptz, ${at}::timestamptz
      from generate_series(1, ${4 * times}::int) n`
  }
})

layer(management({ ROLES: "api" }), { excludeTestServices: true, timeout: "2 minutes" })("Queues over HTTP", (it) => {
  it.effect("show what waits, is due, is leased and failed before, each delivery read once at size", () =>
    Effect.gen(function* () {
      const { owner, sql } = yield* Database
      const operator = yield* person({ operator: true })
      const oz = yield* bearer(operator)
      const hooks = Array.from({ length: 25 }, () => WebhookId.make(randomUUID()))
      for (const [n, id] of hooks.entries()) {
        yield* webhook(id, false)
        yield* queue(id, 100 + n, 1, future, null)
      }
      const [busy, paused] = [hooks[3]!, hooks[4]!]
      yield* queue(busy, 40_000, 2, past, null)
      yield* queue(busy, 7, 1, past, 1)
      yield* queue(paused, 20_000, 1, past, null)
      yield* sql`update webhook_lanes set paused = true where webhook_id = ${paused}::uuid`
      yield* owner`
        insert into timers (aggregate_id, kind, due_at, not_before, last_error)
        select 'queues-' || n, 'test', ${past}::timestamptz,
          case when n = 1 then ${past}::timestamptz else ${future}::timestamptz end, case when n = 1 then 'away' end
        from generate_series(1, 3) n`
      yield* owner`vacuum analyze delivery_queue`
      yield* done(hooks[0]!)

      const { items } = queuesOf((yield* send("GET", "/v1/operations/queues", oz)).body)
      const of = (name: string) => items.find((one) => one.queue === name)
      const first = 25 * 100 + 300
      assert.deepStrictEqual(of("first_tries"), {
        queue: "first_tries",
        depth: first + 7 + 20_000,
        capped: false,
        due: 20_000,
        oldest_due_at: past.toISOString(),
        leased: 7,
        failing: 0,
        per_minute: 97,
      })
      assert.deepInclude(of("retries"), { per_minute: null, capped: false })
      assert.deepInclude(of("retries"), { depth: 40_000, due: 40_000, leased: 0, failing: 40_000 })
      assert.deepStrictEqual(of("timers"), {
        queue: "timers",
        depth: 3,
        capped: false,
        due: 1,
        oldest_due_at: past.toISOString(),
        leased: 0,
        failing: 1,
        per_minute: null,
      })
      assert.deepInclude(of("outbox_unordered"), { per_minute: 5 })
      assert.deepInclude(of("outbox_ordered"), { per_minute: 0 })
      assert.deepInclude(of("mails"), { per_minute: 3 })
      assert.deepInclude(of("slack"), { per_minute: 0 })
      assert.lengthOf(items, 9)

      const answer = yield* send("GET", "/v1/operations/webhooks?sort=backlog", oz)
      const backlogs = backlogsOf(answer.body)
      assert.lengthOf(backlogs.items, 20)
      assert.deepStrictEqual(
        backlogs.items.slice(0, 2).map((one) => [one.webhook_id, one.depth, one.retries, one.paused]),
        [
          [busy, 40_110, 40_000, false],
          [paused, 20_104, 0, true],
        ],
      )
      assert.deepInclude(backlogs.items[0], {
        leased: 7,
        url: "https://hooks.example/x",
        oldest_due_at: past.toISOString(),
      })
      const depths = backlogs.items.map(({ depth }) => depth)
      assert.deepStrictEqual(depths, depths.toSorted((a, b) => b - a))

      const { read, webhooks } = yield* Queues
      const waiting = first + 7 + 60_000
      for (const look of [Effect.asVoid(read(operator)), Effect.asVoid(webhooks(operator))]) {
        const [rows] = yield* rowsRead(sql, look)
        assert.isAtMost(rows.get("delivery_queue")!, waiting, "each waiting delivery once")
      }
      assert.strictEqual((yield* send("GET", "/v1/operations/webhooks?sort=name", oz)).status, 422)
    }))

  it.effect("published messages and ended mails are not read", () =>
    Effect.gen(function* () {
      const { owner, sql } = yield* Database
      const operator = yield* person({ operator: true })
      yield* owner`
        insert into outbox (id, stream, subject, payload, created_at, published_at, not_before)
        select gen_random_uuid(), 'NOTIFICATIONS', 'x', '{}', ${past}::timestamptz, ${past}::timestamptz,
          ${past}::timestamptz from generate_series(1, 30000)`
      yield* owner`
        insert into mails (id, kind, subject_id, recipient, args, state, created_at, ended_at)
        select gen_random_uuid(), 'x', 'x', 'x', '{}', 'sent', ${past}::timestamptz, ${past}::timestamptz
        from generate_series(1, 30000)`
      yield* owner`vacuum analyze outbox, mails`
      const { read } = yield* Queues
      const [rows] = yield* rowsRead(sql, read(operator))
      for (const table of ["outbox", "mails"]) assert.isAtMost(rows.get(table) ?? 0, 1_000, table)
    }))

  it.effect("attempts are not added up over more than 10,000 webhooks", () =>
    Effect.gen(function* () {
      const { owner, sql } = yield* Database
      const rates = Effect.suspend(() => queueRates(sql))
      assert.isNumber((yield* rates).get("first_tries"))
      yield* owner`
        insert into webhook_lanes (webhook_id, account_id, paused)
        select gen_random_uuid(), gen_random_uuid(), true from generate_series(1, 10001)`
      yield* owner`vacuum analyze webhook_lanes, delivery_minutes`
      const [rows, found] = yield* rowsRead(sql, rates)
      assert.deepStrictEqual([found.get("first_tries"), found.get("mails")], [null, 3])
      assert.strictEqual(rows.get("delivery_minutes") ?? 0, 0)
      assert.isAtMost(rows.get("webhook_lanes")!, 10_001)
    }))
})
