/**
 * Due transitions written in batches: the same result as one by one, and no transfer waits for a failing or locked one.
 */
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { randomUUID } from "node:crypto"
import { type AccountId, TransferId, WorkspaceId } from "../../../schemas/BrandedIds.ts"
import type { DomainTransfer } from "../../../schemas/mail/Transfer.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { Transfers } from "../../../services/transfers/Transfers.ts"
import { counting } from "../../support/Statements.ts"
import { day } from "../../support/Fixtures.ts"
import {
  accept,
  accountLine,
  domain,
  domainLine,
  feed,
  fixture,
  offer,
  type Person,
  person,
  seat,
  session,
  stop,
  timed,
} from "./TransferFixture.ts"

interface Case {
  readonly id: TransferId
  readonly domainId: string
  readonly alice: Person
  readonly bob: Person
}

const credential = (domainId: string, accountId: AccountId) =>
  feed({ kind: "smtp_credential", id: randomUUID(), domain_id: domainId, account_id: accountId, username: "u" })

const offered = Effect.gen(function* () {
  const [alice, bob] = [yield* person({ plan: "pro" }), yield* person({ plan: "pro" })]
  const domainId = yield* domain(alice)
  yield* credential(domainId, alice.id)
  const { id } = yield* offer(alice.id, domainId, bob.email)
  return { id, domainId, alice, bob } satisfies Case
})

const accepted = (how: { readonly rotateDkim?: boolean } = {}) =>
  Effect.tap(offered, ({ bob, id }) => accept(bob.id, id, how))

/** The situations in which a transfer can be when its transition is due. */
const cases: Readonly<Record<string, Effect.Effect<Case, unknown, Effect.Services<typeof offered>>>> = {
  "an offer that was not accepted": offered,
  "accepted": accepted(),
  "accepted, with a new key": accepted({ rotateDkim: true }),
  "accepted by an account that is now disabled": Effect.tap(
    accepted(),
    ({ bob }) => feed(accountLine(bob.id, { plan: "pro", status: "disabled" })),
  ),
  "accepted by an account that now has another workspace": Effect.gen(function* () {
    const { alice, bob, domainId, id } = yield* accepted()
    const other = WorkspaceId.make(randomUUID())
    yield* feed({ kind: "workspace", id: other, name: "W", created_at: "2024-01-01T00:00:00.000Z" })
    yield* seat(other, bob.id, "member")
    yield* feed({ kind: "workspace", id: bob.workspaceId, removed: true })
    return { id, domainId, alice, bob: { ...bob, workspaceId: other } }
  }),
  "accepted by an account that now has no workspace": Effect.tap(
    accepted(),
    ({ bob }) => feed({ kind: "workspace", id: bob.workspaceId, removed: true }),
  ),
  "of a domain that is no longer verified": Effect.tap(
    accepted(),
    ({ alice, domainId }) => feed(domainLine(domainId, alice, { verified_at: null })),
  ),
  "stopped": Effect.tap(accepted(), ({ id }) => stop(id)),
}

const lines = (rows: ReadonlyArray<{ readonly line: string }>) => rows.map(({ line }) => line)

/** All rows that a transition writes, with roles instead of ids. */
const traces = Effect.fnUntraced(function* ({ alice, bob, domainId, id }: Case) {
  const { sql } = yield* Database
  const both = [alice.id, bob.id]
  const found = {
    transfer: yield* sql<{ line: string }>`
      select concat_ws(' ', status, version, target_org_id, completed_at, cooloff_until, accept_used, stop_used) as line
      from transfers where id = ${id}::uuid`,
    domain: yield* sql<{ line: string }>`
      select concat_ws(' ', account_id, workspace_id, revision, owner_held, dkim_selector = 'old', updated_at) as line
      from domains where id = ${domainId}::uuid`,
    timers: yield* sql<{ line: string }>`select kind as line from timers where aggregate_id = ${id}`,
    keys: yield* sql<{ line: string }>`
      select algorithm as line from dkim_keys where domain_id = ${domainId}::uuid`,
    credentials: yield* sql<{ line: string }>`
      select coalesce(locally_revoked_at::text, 'live') as line from smtp_credentials
      where domain_id = ${domainId}::uuid order by account_id`,
    audit: yield* sql<{ line: string }>`
      select concat_ws(' ', action, actor, subject, details->>'side', details->>'status', details->>'domain_id') as line
      from audit_records where details->>'transfer_id' = ${id} order by id`,
    messages: yield* sql<{ line: string }>`
      select concat_ws(' ', stream, subject, seq, payload::jsonb->>'status', payload::jsonb->>'event',
        payload::jsonb->>'account_id', payload::jsonb->>'revision') as line
      from outbox where aggregate_id = ${domainId} or subject = ${`directory.v1.domain.${domainId}`}
      order by stream, seq`,
    mails: yield* sql<{ line: string }>`
      select concat_ws(' ', kind, recipient, args->>'to') as line from mails where subject_id = ${id} order by id`,
    notices: yield* sql<{ line: string }>`
      select concat_ws(' ', account_id, version, severity, title) as line from notifications
      where account_id = any(${both}::uuid[]) order by account_id, version`,
    inboxes: yield* sql<{ line: string }>`
      select concat_ws(' ', account_id, version, total, unread) as line from inboxes
      where account_id = any(${both}::uuid[]) order by account_id`,
  }
  const named = [[alice.id, "alice"], [bob.id, "bob"], [alice.workspaceId, "hers"], [bob.workspaceId, "his"], [
    domainId,
    "domain",
  ]] as const
  const text = JSON.stringify(Object.fromEntries(Object.entries(found).map(([what, rows]) => [what, lines(rows)])))
  const shown = JSON.parse(named.reduce((all, [id, name]) => all.replaceAll(id, name), text))
  // The order depends on random ids.
  for (const what of ["notices", "inboxes"]) shown[what].sort()
  return shown as Readonly<Record<string, ReadonlyArray<string>>>
})

const statusOf = Effect.fnUntraced(function* (ids: ReadonlyArray<string>) {
  const { sql } = yield* Database
  const rows = yield* sql<{ status: string; n: number }>`
    select status, count(*)::int as n from transfers where id = any(${[...ids]}::uuid[]) group by status`
  return Object.fromEntries(rows.map(({ n, status }) => [status, n]))
})

layer(fixture(), { excludeTestServices: true, timeout: "2 minutes" })("due transitions in a batch", (it) => {
  it.effect("write exactly the rows that each would write by itself", () =>
    Effect.gen(function* () {
      const transfers = yield* Transfers
      const all = Effect.forEach(Object.values(cases), (one) => one)
      const [many, single] = [yield* all, yield* all]
      yield* TestClock.adjust(8 * day)
      const fresh = yield* offered
      const ids = [...many.map(({ id }) => id), fresh.id, TransferId.make(randomUUID())]
      const settled = yield* transfers.settleMany(ids)
      const did = yield* Effect.forEach(single, ({ id }) => transfers.settle(id))
      assert.deepStrictEqual(many.map(({ id }) => settled.get(id)), did.map((moved) => moved ? "moved" : "unmoved"))
      assert.strictEqual(settled.get(fresh.id), "unmoved")
      for (const [i, name] of Object.keys(cases).entries()) {
        assert.deepStrictEqual(yield* traces(many[i]!), yield* traces(single[i]!), name)
      }
      const again = yield* transfers.settleMany(ids)
      assert.deepStrictEqual(new Set(again.values()), new Set(["unmoved"]))
    }).pipe(timed))

  it.effect("one that the database refuses fails alone, and is shown as accepted", () =>
    Effect.gen(function* () {
      const { owner, sql } = yield* Database
      const made = yield* Effect.forEach(Array(9).keys().toArray(), (n) => n % 2 === 0 ? accepted() : offered)
      const bad = made[4]!.id
      yield* owner.unsafe(`create function refuse() returns trigger language plpgsql as
        $$ begin if new.id = '${bad}' and new.status = 'completed' then raise exception 'poison'; end if; return new; end $$`)
      yield* owner`create trigger refuse before update on transfers for each row execute function refuse()`
      yield* TestClock.adjust(7 * day)
      const ids = made.map(({ id }) => id)
      const settled = yield* (yield* Transfers).settleMany(ids)
      assert.deepStrictEqual(ids.map((id) => settled.get(id)), ids.map((id) => id === bad ? "failed" : "moved"))
      assert.deepStrictEqual(yield* statusOf(ids), { accepted: 1, completed: 4, expired: 4 })
      const left = yield* sql`select from timers where aggregate_id = any(${ids}::text[])`
      assert.strictEqual(left.length, 1)
      // Lists and eligibility checks work: the failing transfer is shown as stored.
      const { bob } = made[4]!
      const { eligibility, incoming } = yield* Transfers
      const shown: ReadonlyArray<DomainTransfer> = JSON.parse(yield* incoming(session(bob.id)))
      assert.deepStrictEqual(shown.map(({ id, status }) => [id, status]), [[bad, "accepted"]])
      assert.isTrue((yield* eligibility(bob.id)).can_accept)
      yield* owner`drop trigger refuse on transfers`
    }).pipe(timed))

  it.effect("transfers with DKIM keys take the same number of statements, whether two or twelve", () =>
    Effect.gen(function* () {
      const transfers = yield* Transfers
      const { sql } = yield* Database
      const statements = Effect.fnUntraced(function* (n: number) {
        const made = yield* Effect.forEach(Array(n).keys().toArray(), () => accepted({ rotateDkim: true }))
        yield* TestClock.adjust(day)
        const [count, settled] = yield* counting(transfers.settleMany(made.map(({ id }) => id)))
        assert.deepStrictEqual([...settled.values()], made.map(() => "moved"))
        const unkeyed = yield* sql`
          select d.id from domains d left join dkim_keys k on k.domain_id = d.id and k.selector = d.dkim_selector
          where d.id = any(${made.map(({ domainId }) => domainId)}::uuid[]) and k.id is null`
        assert.deepStrictEqual(unkeyed, [])
        return count
      })
      const [two, twelve] = [yield* statements(2), yield* statements(12)]
      assert.strictEqual(twelve, two)
    }).pipe(timed))

  it.effect("a transfer with a locked domain does not delay the others, and follows once it is unlocked", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const made = yield* Effect.forEach(Array(6).keys().toArray(), (n) => n % 2 === 0 ? accepted() : offered)
      const ids = made.map(({ id }) => id)
      yield* TestClock.adjust(7 * day)
      const [locked, free] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const holder = yield* Effect.forkChild(
        sql`select from domains where id = ${made[0]!.domainId}::uuid for update`.pipe(
          Effect.andThen(Deferred.succeed(locked, undefined)),
          Effect.andThen(Deferred.await(free)),
          sql.withTransaction,
        ),
      )
      yield* Deferred.await(locked)
      const settling = yield* Effect.forkChild(Effect.flatMap(Transfers, (all) => all.settleMany(ids)))
      yield* Effect.repeat(statusOf(ids), { until: (found) => found["completed"] === 2 && found["expired"] === 3 })
      assert.strictEqual((yield* statusOf(ids))["accepted"], 1)
      yield* Deferred.succeed(free, undefined)
      yield* Fiber.join(holder)
      assert.deepStrictEqual([...(yield* Fiber.join(settling)).values()], ids.map(() => "moved"))
    }).pipe(timed))

  it.effect("several batches at once, beside single ones and stops, move each transfer once", () =>
    Effect.gen(function* () {
      const transfers = yield* Transfers
      const { sql } = yield* Database
      const made = yield* Effect.forEach(Array(24).keys().toArray(), (n) => n % 3 === 0 ? offered : accepted())
      const ids = made.map(({ id }) => id)
      yield* TestClock.adjust(7 * day)
      yield* Effect.all([
        ...[ids, ids.toReversed(), ids.slice(8)].map((some) => transfers.settleMany(some)),
        ...ids.slice(0, 12).map((id) => Effect.exit(stop(id))),
        ...ids.slice(6, 18).map((id) => transfers.settle(id)),
      ], { concurrency: "unbounded" })
      assert.deepStrictEqual(yield* statusOf(ids), { completed: 16, expired: 8 })
      const odd = yield* sql`
        select t.id from transfers t join outbox o on o.aggregate_id = t.domain_id::text
        where t.id = any(${ids}::uuid[]) group by t.id, t.version
        having count(*) <> t.version or count(distinct o.seq) <> t.version`
      assert.deepStrictEqual(odd, [])
      const audits = yield* sql<{ n: number }>`
        select count(*)::int as n from audit_records
        where details->>'transfer_id' = any(${ids}::text[]) and details->>'status' in ('completed', 'expired')`
      assert.strictEqual(audits[0]!.n, 2 * ids.length)
    }).pipe(timed))
})
