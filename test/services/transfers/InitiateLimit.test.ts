/**
 * The limit of initiations: exact over all requests, counted by the write itself or, after a refusal, by its own write.
 */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { randomUUID } from "node:crypto"
import { type AccountId, DomainId } from "../../../schemas/BrandedIds.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { Transfers } from "../../../services/transfers/Transfers.ts"
import { codeOf, command, domain, fixture, offer, person, seat, timed } from "./TransferFixture.ts"

const together = <A, E, R>(effects: ReadonlyArray<Effect.Effect<A, E, R>>) =>
  Effect.all(effects, { concurrency: "unbounded" })

const sorted = (codes: ReadonlyArray<string>) => [...codes].sort()

layer(fixture({ initiateLimit: 5 }), { excludeTestServices: true, timeout: "2 minutes" })("the limit", (it) => {
  it.effect("requests that reach the check count, also when refused; others do not", () =>
    Effect.gen(function* () {
      const [alice, bob, member] = [yield* person(), yield* person(), yield* person()]
      yield* seat(alice.workspaceId, member.id, "member")
      const domainId = yield* domain(alice)
      const code = (who: AccountId, to: string, id = domainId) => codeOf(offer(who, id, to))
      for (let i = 0; i < 10; i++) {
        assert.strictEqual(yield* code(alice.id, bob.email, DomainId.make(randomUUID())), "not_found")
        assert.strictEqual(yield* code(bob.id, bob.email), "not_found")
        assert.strictEqual(yield* code(member.id, bob.email), "forbidden")
      }
      assert.strictEqual(yield* code(alice.id, "nobody"), "target_not_found")
      assert.strictEqual(yield* code(alice.id, alice.email), "self_transfer")
      assert.strictEqual(yield* code(alice.id, bob.email), "done")
      for (let i = 0; i < 2; i++) assert.strictEqual(yield* code(alice.id, bob.email), "transfer_active")
      for (const to of [bob.email, "nobody", alice.email]) {
        assert.strictEqual(yield* code(alice.id, to), "rate_limited", to)
      }
      const refused = yield* Effect.flip(offer(alice.id, domainId, bob.email))
      assert.deepInclude(refused, { retry_after: 60, limit: 5, window_seconds: 60 })
      yield* TestClock.adjust("59999 millis")
      assert.deepInclude(yield* Effect.flip(offer(alice.id, domainId, bob.email)), { retry_after: 1 })
      yield* TestClock.adjust(1)
      assert.strictEqual(yield* code(alice.id, bob.email), "transfer_active")
    }).pipe(timed))

  it.effect("is exact for 30 requests at once, for 30 domains and for one", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const bob = yield* person()
      for (const many of [true, false]) {
        const alice = yield* person()
        const ids = yield* Effect.forEach(Array.from({ length: many ? 30 : 1 }), () => domain(alice))
        const codes = yield* together(
          Array.from({ length: 30 }, (_, i) => codeOf(offer(alice.id, ids[i % ids.length]!, bob.email))),
        )
        const first = many ? Array(5).fill("done") : ["done", ...Array(4).fill("transfer_active")]
        assert.deepStrictEqual(sorted(codes), sorted([...first, ...Array(25).fill("rate_limited")]))
        const [row] = yield* sql`
          select cardinality(hits) as hits, (select count(*)::int from transfers where source_user_id = ${alice.id}::uuid) as made
          from rate_limits where key = ${`transfers.initiate:${alice.id}`}`
        assert.deepStrictEqual({ ...row! }, { hits: 5, made: many ? 5 : 1 })
      }
    }).pipe(timed))

  it.effect("a command that is sent again after a lost answer counts once", () =>
    Effect.gen(function* () {
      const transfers = yield* Transfers
      const { sql } = yield* Database
      const [alice, bob] = [yield* person(), yield* person()]
      const offered = {
        ...command(),
        accountId: alice.id,
        domainId: yield* domain(alice),
        targetEmail: bob.email,
        note: null,
      }
      const first = yield* transfers.initiate(offered)
      for (let i = 0; i < 6; i++) assert.deepStrictEqual(yield* transfers.initiate(offered), first)
      const [row] = yield* sql`
        select cardinality(hits) as hits from rate_limits where key = ${`transfers.initiate:${alice.id}`}`
      assert.deepStrictEqual({ ...row! }, { hits: 1 })
    }).pipe(timed))
})
