/** Timers on virtual time, moved by the worker alone. */
import { assert, layer } from "@effect/vitest"
import { ConfigProvider, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Cookies } from "../../../services/authentication/Cookies.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { Timers as TimerRows } from "../../../services/platform/database/Timers.ts"
import { Transfers } from "../../../services/transfers/Transfers.ts"
import { load } from "../../../src/AppConfig.ts"
import { TransferTimers } from "../../../src/workers/TransferTimers.ts"
import { day } from "../../support/Fixtures.ts"
import {
  accept,
  config,
  domain,
  domainRow,
  footing,
  now,
  offer,
  person,
  timed,
} from "../../services/transfers/TransferFixture.ts"

const status = Effect.fnUntraced(function* (id: string) {
  const { sql } = yield* Database
  const [row] = yield* sql<{ status: string }>`select status from transfers where id = ${id}::uuid`
  return row!.status
})

/** Waits for the worker's statements: lets real time pass, and moves the virtual clock a little a look. */
const comes = (id: string, expected: string) =>
  Effect.repeat(
    Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 5))).pipe(
      Effect.andThen(TestClock.adjust("200 millis")),
      Effect.andThen(status(id)),
    ),
    { until: (found) => found === expected },
  )

/** Transfers with the defaults of an empty configuration. */
const unconfigured = Layer.unwrap(Effect.map(
  Effect.provideService(load, ConfigProvider.ConfigProvider, ConfigProvider.fromUnknown({})),
  ({ initiateTransferRate: initiateLimit, transferRequestWindow, transferSafetyWindow, transfersEnabled: enabled }) =>
    Transfers.layer({
      ...config,
      enabled,
      initiateLimit,
      requestWindowMillis: transferRequestWindow,
      safetyWindowMillis: transferSafetyWindow,
    }),
))

layer(Layer.provide(footing, Cookies.layer([])), { excludeTestServices: true, timeout: "2 minutes" })(
  "timers",
  (it) => {
    it.effect("an offer expires after 7 days, an accepted transfer completes after 24 hours, and not before", () =>
      Effect.gen(function* () {
        const [alice, bob] = [yield* person({ plan: "pro" }), yield* person()]
        const [first, second] = [yield* domain(alice), yield* domain(alice)]
        const accepted = yield* offer(alice.id, first, bob.email)
        yield* accept(bob.id, accepted.id)
        const pending = yield* offer(alice.id, second, bob.email)
        yield* Effect.scoped(Effect.gen(function* () {
          yield* Layer.build(TransferTimers.layer)
          yield* TestClock.adjust(2_000)
          assert.strictEqual(yield* status(accepted.id), "accepted")
        }))
        // A millisecond before the end of either window nothing is due, for any reader.
        yield* TestClock.adjust(day - 2_001)
        assert.isFalse(yield* (yield* Transfers).settle(accepted.id))
        // The worker was away, and is back late: it fires at once what is due, and only that.
        yield* TestClock.adjust(1)
        yield* Effect.scoped(Effect.gen(function* () {
          yield* Layer.build(TransferTimers.layer)
          yield* comes(accepted.id, "completed")
        }))
        assert.strictEqual(yield* status(pending.id), "pending")
        assert.strictEqual((yield* domainRow(first)).account_id, bob.id)
        const left = Date.parse(pending.expires_at) - (yield* now)
        assert.strictEqual(Date.parse(pending.expires_at) - Date.parse(pending.initiated_at), 7 * day)
        yield* TestClock.adjust(left - 1)
        assert.isFalse(yield* (yield* Transfers).settle(pending.id))
        yield* TestClock.adjust(1)
        yield* Effect.scoped(Effect.gen(function* () {
          yield* Layer.build(TransferTimers.layer)
          yield* comes(pending.id, "expired")
        }))
        const { sql } = yield* Database
        assert.strictEqual((yield* sql`select from timers`).length, 0)
      }).pipe(Effect.provide(unconfigured), timed))

    it.effect("a thousand timers due at one moment fire together, and only those", () =>
      Effect.gen(function* () {
        const { sql } = yield* Database
        const [alice, bob] = [yield* person({ plan: "pro" }), yield* person()]
        const made = yield* offer(alice.id, yield* domain(alice), bob.email)
        // As many more, each of a domain of its own.
        yield* sql`with fresh as (
            select gen_random_uuid() as domain_id, gen_random_uuid() as id, n from generate_series(1, 1000) n
          ), d as (
            insert into domains (id, version, removed, updated_at, name, account_id, workspace_id, verified_at, dkim_selector)
            select f.domain_id, 1, false, d.updated_at, 'd' || n, d.account_id, d.workspace_id, d.verified_at, 'old'
            from fresh f, domains d where d.id = ${made.domain_id}::uuid
          ), t as (
            insert into transfers
            select (jsonb_populate_record(t, jsonb_build_object('id', f.id, 'domain_id', f.domain_id,
              'accept_hash', sha256(f.id::text::bytea)))).*
            from fresh f, transfers t where t.id = ${made.id}::uuid
          )
          insert into timers (aggregate_id, kind, due_at, not_before)
          select f.id::text, kind, due_at, not_before from fresh f, timers where aggregate_id = ${made.id}`
        yield* TestClock.adjust(8 * day)
        yield* Effect.scoped(Effect.gen(function* () {
          yield* Layer.build(TransferTimers.layer)
          yield* Effect.repeat(
            Effect.andThen(TestClock.adjust(1), sql<{ n: number }>`select count(*)::int as n from timers`),
            { until: ([row]) => row!.n === 0 },
          )
        }))
        const [row] = yield* sql<{ expired: number; audits: number }>`
          select count(*)::int as expired,
            (select count(*)::int from audit_records where action = 'domain-transfer.expired' and actor = 'system') as audits
          from transfers where status = 'expired' and initiated_by = ${alice.id}::uuid`
        assert.strictEqual(row!.expired, 1_001)
        assert.isAtLeast(row!.audits, 2 * 1_001)
        const [inbox] = yield* sql<{ total: number; version: bigint }>`
          select total, version from inboxes where account_id = ${bob.id}::uuid`
        assert.deepStrictEqual({ ...inbox! }, { total: 1_002, version: 1_002n })
      }).pipe(Effect.provide(unconfigured), timed))

    it.effect("a claim that its worker left becomes free, and a rewritten timer has no claim", () =>
      Effect.gen(function* () {
        const timers = yield* TimerRows
        const kinds = ["test.kind"]
        const at = yield* Effect.clockWith((clock) => clock.currentTimeMillis)
        yield* timers.set("x", [{ kind: "test.kind", dueAt: at + 1_000 }])
        assert.deepStrictEqual(yield* timers.claim(kinds, 10), [])
        assert.strictEqual(yield* timers.untilNext(kinds, 400), 400)
        assert.strictEqual(yield* timers.untilNext(kinds, 5_000), 1_000)
        yield* TestClock.adjust(1_000)
        const [claimed] = yield* timers.claim(kinds, 10)
        assert.strictEqual(claimed?.aggregate_id, "x")
        assert.deepStrictEqual(yield* timers.claim(kinds, 10), [])
        yield* TestClock.adjust(31_000)
        yield* timers.free
        const [again] = yield* timers.claim(kinds, 10)
        yield* timers.set("x", [{ kind: "test.kind", dueAt: at + day }])
        // The old claims settle nothing any more.
        yield* timers.retry([claimed!, again!], "late")
        assert.strictEqual(yield* timers.untilNext(kinds, 2 * day), day - 32_000)
        yield* timers.set("x", [])
        assert.strictEqual(yield* timers.untilNext(kinds, 77), 77)
      }).pipe(timed))
  },
)
