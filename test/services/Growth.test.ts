/**
 * Statements that look for the few due or expired rows read only those, among 20,000 others. PostgreSQL itself counts
 * the rows that the transaction under test reads (pg_stat_xact_user_tables).
 */
import { assert, layer } from "@effect/vitest"
import type { PgClient } from "@effect/sql-pg"
import { Effect, Layer } from "effect"
import { PersonId } from "../../schemas/BrandedIds.ts"
import { LifecycleRetention as LifecycleRetention } from "../../services/lifecycle/LifecycleRetention.ts"
import { NotificationRetention as NotificationRetention } from "../../services/notifications/NotificationRetention.ts"
import { PeopleRetention as PeopleRetention } from "../../services/people/PeopleRetention.ts"
import { SessionActivity } from "../../services/people/SessionActivity.ts"
import { Database } from "../../services/platform/database/Database.ts"
import { Jobs } from "../../services/platform/messaging/Jobs.ts"
import { unsent } from "../../services/platform/mail/Mails.ts"
import { Outbox } from "../../services/platform/messaging/Outbox.ts"
import { unpublished } from "../../services/platform/messaging/Outbox/UnorderedRelay.ts"
import { Timers } from "../../services/platform/database/Timers.ts"
import { ground } from "../support/TestAccounts.ts"

const many = 20_000
/** The most rows of a table that a statement under test may read. */
const few = 20

const services = Layer.mergeAll(
  LifecycleRetention.layer,
  NotificationRetention.layer(),
  PeopleRetention.layer({ page: 2 }),
  SessionActivity.layer.pipe(Layer.provide(Jobs.layer)),
  Timers.layer,
).pipe(Layer.provideMerge(ground))

/** Rows of the table that the client's transaction has read so far, by index or not. */
const readOf = (sql: PgClient.PgClient, table: string) =>
  Effect.map(
    sql<{ n: number }>`
      select (seq_tup_read + coalesce(idx_tup_fetch, 0))::int as n from pg_stat_xact_user_tables where relname = ${table}`,
    ([row]) => row?.n ?? 0,
  )

/** Runs within a transaction of the client, and fails where it read more than `most` rows of the table. */
const lean = <A, E, R>(sql: PgClient.PgClient, table: string, run: Effect.Effect<A, E, R>, most = few) =>
  Effect.gen(function* () {
    const before = yield* readOf(sql, table)
    const value = yield* run
    assert.isAtMost((yield* readOf(sql, table)) - before, most, `rows of ${table} that were read`)
    return value
  }).pipe(sql.withTransaction)

const days = (n: number) => new Date(Date.now() - n * 86_400_000)

layer(services, { excludeTestServices: true })("tables that grow", (it) => {
  it.effect("the next timer is found without reading earlier ones of another kind", () =>
    Effect.gen(function* () {
      const { owner, sql } = yield* Database
      const timers = yield* Timers
      yield* sql`insert into timers (aggregate_id, kind, due_at, not_before)
        select 'other-' || n, 'other', t, t
        from (select n, ${days(0)}::timestamptz + interval '1 hour' as t from generate_series(1, ${many}) n) x`
      yield* owner`vacuum analyze timers`
      assert.strictEqual(yield* lean(sql, "timers", timers.untilNext(["own"], 1_000)), 1_000)
      yield* timers.set("mine", [{ kind: "own", dueAt: Date.now() - 5 }])
      assert.strictEqual(yield* lean(sql, "timers", timers.untilNext(["own"], 1_000)), 0)
    }))

  it.effect("due timers are claimed and freed by key among waiting ones, also by a generic plan", () =>
    Effect.gen(function* () {
      const { owner, sql } = yield* Database
      const timers = yield* Timers
      yield* sql`insert into timers (aggregate_id, kind, due_at, not_before)
        select 'busy-' || n, 'busy', t, t
        from (select n, case when n > 3 then ${days(-1)}::timestamptz else ${days(1)} end as t
          from generate_series(1, ${many}) n) x`
      yield* owner`vacuum analyze timers`
      const generic = <A, E, R>(run: Effect.Effect<A, E, R>) =>
        Effect.andThen(sql`set local plan_cache_mode = force_generic_plan`, run)
      const claimed = yield* lean(sql, "timers", generic(timers.claim(["busy"], 400)))
      assert.lengthOf(claimed, 3)
      yield* sql`update timers set lease_until = ${days(1)} where claim is not null`
      yield* lean(sql, "timers", generic(timers.free))
      assert.deepStrictEqual(yield* sql`select from timers where claim is not null`, [])
    }))

  it.effect("expired published rows are purged by key, also by a generic plan", () =>
    Effect.gen(function* () {
      const { owner, sql } = yield* Database
      const { relay } = yield* Outbox
      yield* sql`insert into outbox (id, stream, subject, payload, created_at, not_before, published_at)
        select gen_random_uuid(), 'MAIL_OUT', 'mailer.v1.send', '{}', t, t, t
        from (select case when n > 3 then ${days(0)}::timestamptz else ${days(1)} end as t
          from generate_series(1, ${many}) n) x`
      yield* owner`vacuum analyze outbox`
      const generic = sql`set local plan_cache_mode = force_generic_plan`
      assert.strictEqual(yield* lean(sql, "outbox", Effect.andThen(generic, relay.purge)), 3)
    }))

  it.effect("diagnostics count what waits without reading what was published and sent", () =>
    Effect.gen(function* () {
      const { owner, sql } = yield* Database
      const now = days(0)
      yield* sql`insert into outbox (id, stream, subject, payload, created_at, not_before, published_at)
        select gen_random_uuid(), 'MAIL_OUT', 'mailer.v1.send', '{}', ${now}, ${now}, case when n > 3 then ${now}::timestamptz end
        from generate_series(1, ${many}) n`
      yield* sql`update outbox set claim = 1, lease_until = ${now}
        where id = (select id from outbox where published_at is null limit 1)`
      yield* sql`insert into mails (id, kind, subject_id, recipient, args, created_at, not_before, state, ended_at)
        select gen_random_uuid(), 'test', 'x', 'x@example.com', '{}', ${now}, case when n <= 3 then ${now}::timestamptz end,
          case when n <= 3 then 'pending' else 'sent' end, case when n > 3 then ${now}::timestamptz end
        from generate_series(1, ${many}) n`
      yield* owner`vacuum analyze outbox, mails`
      const counts = [["outbox", unpublished(sql, 10_000)], ["mails", unsent(sql, 10_000)]] as const
      for (const [table, rows] of counts) {
        const counted = sql<{ n: number }>`select count(*)::int as n from (${rows}) r`
        assert.deepStrictEqual(yield* lean(sql, table, counted), [{ n: 3 }], table)
      }
    }))

  it.effect("hidden notifications are pruned after a day without reading the shown ones, kept for 400", () =>
    Effect.gen(function* () {
      const { owner, wide } = yield* Database
      const { prune } = yield* NotificationRetention
      yield* owner`insert into notifications (id, account_id, shown, version, category, severity, title, body, href, count,
          created_at)
        select gen_random_uuid(), gen_random_uuid(), n > 3, case when n > 3 then n end, 'team', 'info', 't', 'b', '/', 1,
          case when n > 2 then ${days(2)}::timestamptz else ${days(2)}::timestamptz - interval '1 hour' end
        from generate_series(1, ${many}) n`
      yield* owner`vacuum analyze notifications`
      yield* lean(wide, "notifications", prune)
      assert.deepStrictEqual(yield* owner`select from notifications where not shown`, [])
      assert.strictEqual((yield* owner`select from notifications`).length, many - 3)
    }))

  it.effect("receipts are pruned with the credential actions and proofs that they answered; others stay", () =>
    Effect.gen(function* () {
      const { owner, sql } = yield* Database
      const { prune } = yield* PeopleRetention
      const receipts = (method: string, path: string, count: number, at: Date) =>
        owner`insert into idempotency_receipts (principal, method, path, key, fingerprint, kid, status, body, created_at)
          select 'person:ada', ${method}, ${path}, n || ' ' || ${at.toISOString()}, '', 'kid', 201, '{}', ${at}
          from generate_series(1, ${count}) n`
      const intent = "/v1/me/credential-actions/01990000-0000-7000-8000-000000000000/complete"
      yield* receipts("POST", "/v1/people", many, days(1_000))
      for (const path of ["/v1/me/link-proofs", "/v1/me/credential-actions", intent]) {
        yield* receipts("POST", path, 3, days(91))
        yield* receipts("POST", path, 1, days(89))
      }
      yield* receipts("POST", "/v1/link-requests", 1, days(91))
      yield* owner`vacuum analyze idempotency_receipts`
      // Pages of two: each receipt is found by the index and deleted by its key.
      assert.strictEqual(yield* lean(sql, "idempotency_receipts", prune), 9)
      assert.strictEqual(yield* lean(sql, "idempotency_receipts", prune, 0), 0)
      const left = yield* owner<{ path: string; n: number }>`
        select path, count(*)::int as n from idempotency_receipts group by path order by path collate "C"`
      assert.deepStrictEqual(left, [
        { path: "/v1/link-requests", n: 1 },
        { path: "/v1/me/credential-actions", n: 1 },
        { path: intent, n: 1 },
        { path: "/v1/me/link-proofs", n: 1 },
        { path: "/v1/people", n: many },
      ])
    }))

  it.effect("new sessions lock their people by key", () =>
    Effect.gen(function* () {
      const { owner, sql } = yield* Database
      const sightings = yield* SessionActivity
      yield* owner`insert into people (id, updated_at, issuer, subject, status, merged_into)
        select 'growth-' || n, ${
        days(0)
      }, 'https://id.example', 'growth-' || n, 'active', case n when 2 then 'growth-1' end
        from generate_series(1, ${many}) n`
      yield* owner`vacuum analyze people`
      const seconds = Math.floor(Date.now() / 1_000)
      yield* sightings.add(
        {
          via: "person",
          issuer: "https://id.example",
          subject: "growth-2",
          clientId: "portal",
          jti: "j",
          sid: "s",
          authTime: seconds,
          acr: null,
          amr: [],
          aal: "unknown",
          issuedAt: seconds,
          expiresAt: seconds + 60,
        },
        PersonId.make("growth-2"),
        { userAgent: null, address: null },
        false,
      )
      yield* lean(sql, "people", sightings.flush)
      assert.lengthOf(yield* sql`select from sessions where person_id = 'growth-2'`, 1)
    }))

  it.effect("a stream's own messages are found by their time of creation or delivery", () =>
    Effect.gen(function* () {
      const { owner, sql } = yield* Database
      const { prune } = yield* LifecycleRetention
      yield* owner`insert into lifecycle_streams (id, project_id, service_issuer, service_id, status, status_by, delivery,
          created_at, updated_at, epoch, position)
        values (gen_random_uuid(), 'p', 'i', 's', 'enabled', 'receiver', 'poll', ${days(0)}, ${days(0)}, 1, 0)`
      yield* owner`insert into lifecycle_stream_messages (id, stream_id, kind, message, created_at, delivered_at)
        select (lpad(to_hex(${days(2).getTime()}::bigint), 12, '0') || '70008' || lpad(to_hex(n), 15, '0'))::uuid, s.id,
          'verification', '', ${days(2)}, case when n <= 3 then ${days(2)}::timestamptz else ${days(0)}::timestamptz end
        from lifecycle_streams s cross join generate_series(1, ${many}) n`
      yield* owner`vacuum analyze lifecycle_stream_messages`
      yield* lean(sql, "lifecycle_stream_messages", prune)
      assert.strictEqual((yield* owner`select from lifecycle_stream_messages`).length, many - 3)
    }))
})
