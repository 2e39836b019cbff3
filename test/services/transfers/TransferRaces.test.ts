/** Concurrent commands on PostgreSQL: exactly one succeeds, and each other gets its documented problem. */
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { randomUUID } from "node:crypto"
import type { AccountId, TransferId } from "../../../schemas/BrandedIds.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { Transfers } from "../../../services/transfers/Transfers.ts"
import { day } from "../../support/Fixtures.ts"
import {
  accept,
  codeOf,
  command,
  domain,
  domainLine,
  domainRow,
  feed,
  fixture,
  force,
  offer,
  person,
  published,
  stop,
  timed,
} from "./TransferFixture.ts"

/** The number of times of each answer. */
const tally = (codes: ReadonlyArray<string>) => {
  const counts: Record<string, number> = {}
  for (const code of codes) counts[code] = (counts[code] ?? 0) + 1
  return counts
}

const together = <A, E, R>(effects: ReadonlyArray<Effect.Effect<A, E, R>>) =>
  Effect.all(effects, { concurrency: "unbounded" })

const cancel = Effect.fnUntraced(function* (accountId: AccountId, transferId: TransferId) {
  return yield* (yield* Transfers).cancel({ ...command(), accountId, transferId })
})

/** Takes `lock`, waits until `waits` is blocked by it, runs `meanwhile` in the same transaction, then commits. */
const whileWaiting = Effect.fnUntraced(function* <E1, R1, E2, R2, E3, R3>(
  lock: Effect.Effect<unknown, E1, R1>,
  waits: Effect.Effect<unknown, E2, R2>,
  meanwhile: Effect.Effect<unknown, E3, R3>,
) {
  const { sql } = yield* Database
  const locked = yield* Deferred.make<void>()
  const waiting = yield* Effect.forkChild(Effect.andThen(Deferred.await(locked), waits))
  const found = sql`
    select from pg_locks l join pg_stat_activity a on a.pid = l.pid
    where not l.granted and a.datname = current_database()`
  yield* lock.pipe(
    Effect.andThen(Deferred.succeed(locked, undefined)),
    Effect.andThen(Effect.repeat(found, { until: (rows) => rows.length > 0 })),
    Effect.andThen(meanwhile),
    sql.withTransaction,
  )
  yield* Fiber.join(waiting)
})

layer(fixture(), { excludeTestServices: true, timeout: "2 minutes" })("races", (it) => {
  it.effect("50 accepts of one transfer by one token: one succeeds, 49 find the token used", () =>
    Effect.gen(function* () {
      const [alice, bob] = [yield* person(), yield* person()]
      const domainId = yield* domain(alice)
      const { id } = yield* offer(alice.id, domainId, bob.email)
      const codes = yield* together(Array.from({ length: 50 }, () => codeOf(accept(bob.id, id, { byToken: true }))))
      assert.deepStrictEqual(tally(codes), { done: 1, not_found: 49 })
      const { sql } = yield* Database
      const [row] = yield* sql<{ version: number; mails: number }>`
        select version, (select count(*)::int from mails where subject_id = t.id::text and kind = 'transfer.stop') as mails
        from transfers t where id = ${id}::uuid`
      assert.deepStrictEqual({ ...row! }, { version: 2, mails: 1 })
    }).pipe(timed))

  it.effect("50 accepts by id: one succeeds, 49 fail with not_pending", () =>
    Effect.gen(function* () {
      const [alice, bob] = [yield* person(), yield* person()]
      const { id } = yield* offer(alice.id, yield* domain(alice), bob.email)
      const codes = yield* together(Array.from({ length: 50 }, () => codeOf(accept(bob.id, id))))
      assert.deepStrictEqual(tally(codes), { done: 1, not_pending: 49 })
    }).pipe(timed))

  it.effect("two accepts of different domains at limit − 1: one succeeds, five times in a row", () =>
    Effect.gen(function* () {
      for (let i = 0; i < 5; i++) {
        const [alice, bob] = [yield* person({ plan: "pro" }), yield* person({ domain_limit: 2 })]
        yield* domain(bob)
        const ids = yield* Effect.forEach(
          [1, 2],
          () => Effect.flatMap(domain(alice), (id) => Effect.map(offer(alice.id, id, bob.email), ({ id }) => id)),
        )
        const codes = yield* together(ids.map((id) => codeOf(accept(bob.id, id))))
        assert.deepStrictEqual(tally(codes), { done: 1, domain_limit: 1 })
      }
    }).pipe(timed))

  it.effect("stop against completion: before the window's end the stop wins, from then on the move", () =>
    Effect.gen(function* () {
      const transfers = yield* Transfers
      for (const [millis, stopped, owner] of [[day - 1, "done", "source"], [day, "not_stoppable", "target"]] as const) {
        const [alice, bob] = [yield* person(), yield* person()]
        const domainId = yield* domain(alice)
        const { id } = yield* offer(alice.id, domainId, bob.email)
        yield* accept(bob.id, id)
        yield* TestClock.adjust(millis)
        const settle = Effect.as(transfers.settle(id), "settled")
        const codes = yield* together([settle, codeOf(stop(id)), settle, codeOf(stop(id)), settle])
        const stops = [codes[1]!, codes[3]!]
        if (stopped === "done") assert.sameMembers(stops, ["done", "not_found"])
        else assert.deepStrictEqual(stops, ["not_stoppable", "not_stoppable"])
        assert.strictEqual((yield* domainRow(domainId)).account_id, owner === "source" ? alice.id : bob.id)
        assert.deepStrictEqual((yield* published(domainId)).map(({ status }) => status), [
          ...["pending", "accepted", owner === "source" ? "reversed" : "completed"],
        ])
      }
    }).pipe(timed))

  it.effect("accept against cancel: one succeeds, the other fails with not_pending", () =>
    Effect.gen(function* () {
      for (let i = 0; i < 8; i++) {
        const [alice, bob] = [yield* person(), yield* person()]
        const domainId = yield* domain(alice)
        const { id } = yield* offer(alice.id, domainId, bob.email)
        const commands = [codeOf(accept(bob.id, id, { byToken: true })), codeOf(cancel(alice.id, id))]
        const codes = yield* together(i % 2 === 0 ? commands : commands.reverse())
        assert.deepStrictEqual(tally(codes), { done: 1, not_pending: 1 })
      }
    }).pipe(timed))

  it.effect("two forces to one account: one moves, the other is refused; to two accounts: both, in order", () =>
    Effect.gen(function* () {
      const [alice, bob, eve, carol] = [yield* person(), yield* person(), yield* person(), yield* person()]
      const domainId = yield* domain(alice)
      const same = yield* together([1, 2].map(() => codeOf(force(carol.id, domainId, bob.email))))
      assert.deepStrictEqual(tally(same), { done: 1, self_transfer: 1 })
      const both = yield* together([alice, eve].map(({ email }) => codeOf(force(carol.id, domainId, email))))
      assert.deepStrictEqual(tally(both), { done: 2 })
      const { sql } = yield* Database
      const moves = yield* sql<{ source: string; target: string }>`
        select source_user_id::text as source, target_user_id::text as target from transfers t
          join outbox o on o.aggregate_id = t.domain_id::text and o.payload::json->>'id' = t.id::text
        where domain_id = ${domainId}::uuid order by o.seq`
      for (const [i, { source }] of moves.entries()) if (i > 0) assert.strictEqual(source, moves[i - 1]!.target)
      assert.strictEqual((yield* domainRow(domainId)).account_id, moves.at(-1)!.target)
    }).pipe(timed))

  it.effect("a force at the window's end: the due completion is written first, then the force moves the domain", () =>
    Effect.gen(function* () {
      const transfers = yield* Transfers
      for (let i = 0; i < 6; i++) {
        const [alice, bob, eve, carol] = [yield* person(), yield* person(), yield* person(), yield* person()]
        const domainId = yield* domain(alice)
        const { id } = yield* offer(alice.id, domainId, bob.email)
        yield* accept(bob.id, id)
        yield* TestClock.adjust(day)
        const settle = i % 2 === 0 ? Effect.asVoid(transfers.settle(id)) : Effect.asVoid(transfers.settleMany([id, id]))
        const codes = yield* together([
          Effect.as(settle, "settled"),
          codeOf(force(carol.id, domainId, eve.email, false)),
          codeOf(stop(id)),
        ])
        assert.deepStrictEqual(codes.slice(1), ["done", "not_stoppable"])
        assert.strictEqual((yield* domainRow(domainId)).account_id, eve.id)
        // The completion was due before the force.
        assert.deepStrictEqual((yield* published(domainId)).map(({ status }) => status), [
          ...["pending", "accepted", "completed", "completed"],
        ])
      }
    }).pipe(timed))

  it.effect("20 initiates of one domain: one succeeds, 19 fail with transfer_active", () =>
    Effect.gen(function* () {
      const [alice, bob] = [yield* person(), yield* person()]
      const domainId = yield* domain(alice)
      const codes = yield* together(Array.from({ length: 20 }, () => codeOf(offer(alice.id, domainId, bob.email))))
      assert.deepStrictEqual(tally(codes), { done: 1, transfer_active: 19 })
    }).pipe(timed))

  it.effect("an initiate against a force: no live transfer of the former owner is left", () =>
    Effect.gen(function* () {
      for (let i = 0; i < 5; i++) {
        const [alice, bob, eve, carol] = [yield* person(), yield* person(), yield* person(), yield* person()]
        const domainId = yield* domain(alice)
        const [code] = yield* together([
          codeOf(offer(alice.id, domainId, bob.email)),
          codeOf(force(carol.id, domainId, eve.email, false)),
        ])
        assert.include(["done", "not_found"], code)
        const { sql } = yield* Database
        const live = yield* sql`
          select from transfers where domain_id = ${domainId}::uuid and status in ('pending', 'accepted')`
        assert.strictEqual(live.length, 0)
        assert.strictEqual((yield* domainRow(domainId)).account_id, eve.id)
      }
    }).pipe(timed))

  it.effect("accepts, cancels and directory lines at once: no 503, and timers and audit match each row", () =>
    Effect.gen(function* () {
      const [alice, bob, eve] = [yield* person({ plan: "pro" }), yield* person({ plan: "pro" }), yield* person()]
      const ids = yield* Effect.forEach([1, 2, 3, 4, 5, 6], () => domain(alice))
      const offered = yield* Effect.forEach(ids, (id) => offer(alice.id, id, bob.email))
      const [accepts, cancels] = yield* Effect.all([
        together(offered.map(({ id }) => codeOf(accept(bob.id, id)))),
        together(offered.map(({ id }) => codeOf(cancel(alice.id, id)))),
        together(ids.slice(0, 3).map((id) => feed(domainLine(id, eve)))),
      ], { concurrency: "unbounded" })
      const codes = [...accepts, ...cancels]
      assert.notInclude(codes, "dependency_unavailable")
      const { sql } = yield* Database
      const rows = yield* sql<{ status: string; timers: number; audits: number; version: number }>`
        select status, version, (select count(*)::int from timers where aggregate_id = t.id::text) as timers,
          (select count(*)::int from audit_records where details->>'transfer_id' = t.id::text) as audits
        from transfers t where domain_id = any(${ids}::uuid[]) order by id`
      for (const { audits, status, timers, version } of rows) {
        assert.strictEqual(timers, status === "accepted" ? 1 : 0)
        assert.strictEqual(audits, 2 * version)
      }
      for (const { status } of rows.slice(0, 3)) assert.include(["cancelled", "reversed"], status)
    }).pipe(timed))

  it.effect("a directory batch that ends a transfer locks inboxes after all its other rows", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const [alice, bob, eve] = [yield* person({ plan: "pro" }), yield* person({ plan: "pro" }), yield* person()]
      const [sold, other] = [yield* domain(alice), yield* domain(alice)]
      const { id } = yield* offer(alice.id, sold, bob.email)
      const credential = {
        kind: "smtp_credential",
        id: randomUUID(),
        domain_id: other,
        account_id: alice.id,
        username: "u",
      }
      // A command that has locked the other domain may still write to its owner's inbox, while the batch waits for it.
      yield* whileWaiting(
        sql`select from domains where id = ${other}::uuid for update`,
        feed(domainLine(sold, eve), credential),
        sql`select from inboxes where account_id = ${alice.id}::uuid for update nowait`,
      )
      const [ended] = yield* sql`select status from transfers where id = ${id}::uuid`
      assert.deepStrictEqual(ended, { status: "cancelled" })
      const told = yield* sql`
        select from notifications where account_id = ${alice.id}::uuid and title = 'Domain transfer ended'`
      assert.lengthOf(told, 1)
    }).pipe(timed))

  it.effect("a directory line about a credential locks its domain before the credential, as a move does", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const alice = yield* person({ plan: "pro" })
      const domainId = yield* domain(alice)
      const id = randomUUID()
      const line = { kind: "smtp_credential", id, domain_id: domainId, account_id: alice.id, username: "u" }
      yield* feed(line)
      yield* whileWaiting(
        sql`select from domains where id = ${domainId}::uuid for update`,
        feed({ ...line, username: "v" }),
        sql`select from smtp_credentials where id = ${id}::uuid for update nowait`,
      )
      const [row] = yield* sql`select username from smtp_credentials where id = ${id}::uuid`
      assert.deepStrictEqual(row, { username: "v" })
      // The removal of an unknown credential has no domain to lock.
      yield* feed({ kind: "smtp_credential", id: randomUUID(), removed: true })
    }).pipe(timed))
})
