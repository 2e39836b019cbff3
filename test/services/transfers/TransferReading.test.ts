import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { randomUUID } from "node:crypto"
import { type AccountId, TransferId } from "../../../schemas/BrandedIds.ts"
import { Transfers } from "../../../services/transfers/Transfers.ts"
import {
  accept,
  codeOf,
  command,
  domain,
  domainRow,
  fixture,
  offer,
  person,
  seat,
  stop,
  timed,
} from "./TransferFixture.ts"

const read = Effect.fnUntraced(function* (accountId: AccountId, transferId: TransferId) {
  return yield* (yield* Transfers).read(accountId, transferId)
})

layer(fixture(), { excludeTestServices: true, timeout: "2 minutes" })("reading one transfer", (it) => {
  it.effect("parties and members of the workspace read it in every state; to others it does not exist", () =>
    Effect.gen(function* () {
      const [alice, bob, member, eve] = [yield* person(), yield* person(), yield* person(), yield* person()]
      yield* seat(alice.workspaceId, member.id, "member")
      // An administrator of the workspace initiates.
      const initiator = yield* person()
      yield* seat(alice.workspaceId, initiator.id, "admin")
      const made = yield* offer(initiator.id, yield* domain(alice), bob.email, "take it")
      const states = [made]
      for (const who of [alice, bob, member, initiator]) assert.deepStrictEqual(yield* read(who.id, made.id), made)
      states.push(yield* accept(bob.id, made.id), yield* stop(made.id))
      const last = states.at(-1)!
      assert.strictEqual(last.status, "reversed")
      for (const who of [alice, bob, member, initiator]) assert.deepStrictEqual(yield* read(who.id, made.id), last)
      assert.strictEqual(yield* codeOf(read(eve.id, made.id)), "not_found")
      assert.strictEqual(yield* codeOf(read(alice.id, TransferId.make(randomUUID()))), "not_found")
    }))

  it.effect("a declined and a cancelled offer stay readable for both sides", () =>
    Effect.gen(function* () {
      const transfers = yield* Transfers
      const [alice, bob] = [yield* person({ plan: "pro" }), yield* person()]
      const [one, two] = [
        yield* offer(alice.id, yield* domain(alice), bob.email),
        yield* offer(alice.id, yield* domain(alice), bob.email),
      ]
      const declined = yield* transfers.decline({ ...command(), accountId: bob.id, transferId: one.id })
      const cancelled = yield* transfers.cancel({ ...command(), accountId: alice.id, transferId: two.id })
      for (const who of [alice, bob]) {
        assert.deepStrictEqual(yield* read(who.id, one.id), declined)
        assert.deepStrictEqual(yield* read(who.id, two.id), cancelled)
      }
    }))

  it.effect("a transfer whose window is over is completed first, an offer whose time is over reads as expired", () =>
    timed(Effect.gen(function* () {
      const [alice, bob] = [yield* person({ plan: "pro" }), yield* person()]
      const domainId = yield* domain(alice)
      const accepted = yield* offer(alice.id, domainId, bob.email)
      yield* accept(bob.id, accepted.id)
      const waiting = yield* offer(alice.id, yield* domain(alice), bob.email)
      yield* TestClock.adjust("1 day")
      assert.strictEqual((yield* read(alice.id, accepted.id)).status, "completed")
      assert.strictEqual((yield* domainRow(domainId)).account_id, bob.id)
      assert.strictEqual((yield* read(alice.id, waiting.id)).status, "pending")
      yield* TestClock.adjust("6 days")
      assert.strictEqual((yield* read(bob.id, waiting.id)).status, "expired")
    })))

  it.effect("a read by a stranger does not move it", () =>
    timed(Effect.gen(function* () {
      const [alice, bob, eve] = [yield* person(), yield* person(), yield* person()]
      const domainId = yield* domain(alice)
      const { id } = yield* offer(alice.id, domainId, bob.email)
      yield* accept(bob.id, id)
      yield* TestClock.adjust("2 days")
      assert.strictEqual(yield* codeOf(read(eve.id, id)), "not_found")
      assert.strictEqual((yield* domainRow(domainId)).account_id, alice.id)
    })))
})
