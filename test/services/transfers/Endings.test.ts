import { assert, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { TestClock } from "effect/testing"
import { randomUUID } from "node:crypto"
import { type AccountId, DomainId, type TransferId } from "../../../schemas/BrandedIds.ts"
import { DomainTransfer } from "../../../schemas/mail/Transfer.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { Transfers } from "../../../services/transfers/Transfers.ts"
import { day } from "../../support/Fixtures.ts"
import {
  accept,
  accountLine,
  codeOf,
  command,
  domain,
  domainLine,
  domainRow,
  feed,
  fixture,
  force,
  now,
  offer,
  person,
  published,
  seat,
  session,
  timed,
  tokenOf,
} from "./TransferFixture.ts"

const decodeList = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Array(DomainTransfer)))

const outgoing = Effect.fnUntraced(function* (accountId: AccountId) {
  return decodeList(yield* (yield* Transfers).outgoing(session(accountId)))
})
const stop = Effect.fnUntraced(function* (transferId: TransferId) {
  return yield* (yield* Transfers).stop({ ...command(), transferId })
})

layer(fixture(), { excludeTestServices: true, timeout: "2 minutes" })("how transfers end", (it) => {
  it.effect("stop: once, until the last millisecond of the window; after it a stop completes the transfer", () =>
    Effect.gen(function* () {
      const transfers = yield* Transfers
      const [alice, bob] = [yield* person(), yield* person()]
      const domainId = yield* domain(alice)
      const first = yield* offer(alice.id, domainId, bob.email)
      assert.strictEqual(yield* codeOf(stop(first.id)), "not_stoppable")
      yield* accept(bob.id, first.id)
      const found = yield* transfers.find("stop", yield* tokenOf("stop", first.id))
      assert.strictEqual(found?.id, first.id)
      yield* TestClock.adjust(day - 1)
      const stopped = yield* stop(first.id)
      assert.deepStrictEqual([stopped.status, stopped.completed_at], ["reversed", null])
      assert.strictEqual(yield* codeOf(stop(first.id)), "not_found")
      assert.strictEqual((yield* domainRow(domainId)).account_id, alice.id)
      const second = yield* offer(alice.id, domainId, bob.email)
      yield* accept(bob.id, second.id)
      yield* TestClock.adjust(day)
      assert.strictEqual(yield* codeOf(stop(second.id)), "not_stoppable")
      // The command came before the timer and wrote the due transition.
      assert.strictEqual((yield* domainRow(domainId)).account_id, bob.id)
    }).pipe(timed))

  it.effect("a command that is refused for its caller still writes the due transition", () =>
    Effect.gen(function* () {
      const transfers = yield* Transfers
      const [alice, bob, eve] = [yield* person(), yield* person(), yield* person()]
      const [expiring, completing] = [yield* domain(alice), yield* domain(alice)]
      const { id } = yield* offer(alice.id, expiring, bob.email)
      yield* feed(accountLine(eve.id, { status: "disabled" }))
      yield* TestClock.adjust(7 * day)
      const cancelled = transfers.cancel({ ...command(), accountId: eve.id, transferId: id })
      assert.strictEqual(yield* codeOf(cancelled), "invalid_credentials")
      assert.strictEqual((yield* transfers.find("id", id))!.status, "expired")
      const second = yield* offer(alice.id, completing, bob.email)
      yield* accept(bob.id, second.id)
      yield* TestClock.adjust(day)
      assert.strictEqual(yield* codeOf(accept(eve.id, second.id)), "invalid_credentials")
      assert.strictEqual((yield* domainRow(completing)).account_id, bob.id)
      assert.strictEqual(yield* codeOf(offer(bob.id, completing, alice.email)), "done")
    }).pipe(timed))

  it.effect("force: moves at once, ends a live transfer, ignores the plan's limit; its refusals", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const [alice, bob, carol] = [yield* person(), yield* person(), yield* person({ platform_admin: true })]
      const lonely = yield* person()
      yield* sql`update workspace_memberships set removed = true where account_id = ${lonely.id}::uuid`
      yield* domain(bob)
      const domainId = yield* domain(alice, { verified_at: null })
      assert.strictEqual(yield* codeOf(force(carol.id, DomainId.make(randomUUID()), bob.email)), "not_found")
      assert.strictEqual(yield* codeOf(force(carol.id, domainId, "nobody@example.com")), "target_not_found")
      assert.strictEqual(yield* codeOf(force(carol.id, domainId, alice.email)), "self_transfer")
      assert.strictEqual(yield* codeOf(force(carol.id, domainId, lonely.email)), "org_access_lost")
      yield* feed(domainLine(domainId, alice))
      const pending = yield* offer(alice.id, domainId, bob.email)
      const credentialId = randomUUID()
      yield* feed({
        kind: "smtp_credential",
        id: credentialId,
        domain_id: domainId,
        account_id: alice.id,
        username: "u",
        revoked_at: null,
      })
      // Bob's plan has no room: a forced transfer ignores that.
      const forced = yield* force(carol.id, domainId, bob.email)
      const at = new Date(yield* now).toISOString()
      assert.deepInclude(forced, {
        status: "completed",
        source_user_id: alice.id,
        target_user_id: bob.id,
        target_org_id: bob.workspaceId,
        initiated_at: at,
        accepted_at: at,
        completed_at: at,
        cooloff_until: null,
        note: null,
      })
      assert.strictEqual((yield* outgoing(alice.id))[0]?.status, "cancelled")
      assert.deepStrictEqual((yield* outgoing(carol.id)).map(({ id }) => id), [forced.id])
      const moved = yield* domainRow(domainId)
      assert.deepStrictEqual([moved.account_id, moved.workspace_id], [bob.id, bob.workspaceId])
      assert.notStrictEqual(moved.dkim_selector, "old")
      const [credential] = yield* sql<{ at: Date }>`
        select locally_revoked_at as at from smtp_credentials where id = ${credentialId}::uuid`
      assert.strictEqual(credential!.at.toISOString(), at)
      const told = yield* sql`select from outbox where subject = ${`directory.v1.smtp_credential.${credentialId}`}`
      assert.strictEqual(told.length, 1)
      const audit = yield* sql<{ subject: string; actor: string; action: string }>`
        select subject, actor, action from audit_records where details->>'transfer_id' = ${forced.id} order by id`
      assert.deepStrictEqual(
        [...audit],
        [alice, bob].map(({ id }) => ({
          subject: `account:${id}`,
          actor: `account:${carol.id}`,
          action: "domain-transfer.forced",
        })),
      )
      assert.deepStrictEqual((yield* published(domainId)).map(({ status }) => status), [
        ...["pending", "cancelled", "completed"],
      ])
      const mails = yield* sql<{ kind: string; recipient: string }>`
        select kind, recipient from mails where subject_id in (${forced.id}, ${pending.id}) order by kind, recipient`
      assert.sameDeepMembers(mails.map(({ kind, recipient }) => [kind, recipient]), [
        ["transfer.invitation", bob.email],
        // Both are parties of the forced transfer: its mails also inform them that the offer has ended.
        ["transfer.completed", alice.email],
        ["transfer.completed", bob.email],
      ])
      const back = yield* force(carol.id, domainId, alice.email, false)
      assert.strictEqual(back.source_user_id, bob.id)
      assert.strictEqual((yield* domainRow(domainId)).dkim_selector, moved.dkim_selector)
      const again = yield* offer(alice.id, domainId, lonely.email)
      yield* seat(alice.workspaceId, lonely.id, "member")
      yield* accept(lonely.id, again.id)
      yield* force(carol.id, domainId, bob.email)
      assert.strictEqual((yield* outgoing(alice.id))[0]?.status, "reversed")
    }).pipe(timed))

  it.effect("the directory moves or removes the domain: its live transfer ends, and both sides get a mail", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const [alice, bob, eve] = [yield* person({ plan: "pro" }), yield* person({ plan: "pro" }), yield* person()]
      const [sold, gone, same, moved] = yield* Effect.forEach([1, 2, 3, 4], () => domain(alice))
      const ids = yield* Effect.forEach(
        [sold!, gone!, same!, moved!],
        (id) => Effect.map(offer(alice.id, id, bob.email), ({ id }) => id),
      )
      yield* accept(bob.id, ids[1]!)
      yield* feed(
        domainLine(sold!, eve),
        { kind: "domain", id: gone!, removed: true },
        domainLine(same!, alice, { dkim_selector: "s3" }),
        domainLine(moved!, alice, { workspace_id: eve.workspaceId }),
      )
      const states = yield* sql<{ status: string }>`
        select status from transfers where id = any(${ids}::uuid[]) order by id`
      assert.deepStrictEqual(states.map(({ status }) => status), ["cancelled", "reversed", "pending", "cancelled"])
      const mails = yield* sql<{ kind: string; recipient: string }>`
        select kind, recipient from mails where subject_id in (${ids[0]!}, ${ids[1]!})
          and kind in ('transfer.cancelled', 'transfer.reversed') order by kind, recipient`
      assert.sameDeepMembers(mails.map(({ kind, recipient }) => [kind, recipient]), [
        ...["transfer.cancelled", "transfer.reversed"].flatMap((kind) => [[kind, alice.email], [kind, bob.email]]),
      ])
      assert.strictEqual(yield* codeOf(accept(bob.id, ids[0]!)), "not_pending")
    }).pipe(timed))

  it.effect("a domain that one batch takes away and gives back still ends its transfer", () =>
    Effect.gen(function* () {
      const [alice, bob, eve] = [yield* person({ plan: "pro" }), yield* person({ plan: "pro" }), yield* person()]
      const [sold, gone] = [yield* domain(alice), yield* domain(alice)]
      yield* offer(alice.id, sold, bob.email)
      yield* accept(bob.id, (yield* offer(alice.id, gone, bob.email)).id)
      yield* feed(
        domainLine(sold, eve),
        { kind: "domain", id: gone, removed: true },
        domainLine(sold, alice),
        domainLine(gone, alice),
      )
      const statuses = (yield* outgoing(alice.id)).map(({ domain_id, status }) => [domain_id, status])
      assert.deepStrictEqual(statuses, [[gone, "reversed"], [sold, "cancelled"]])
    }).pipe(timed))

  it.effect("after a completion an old directory line does not restore the owner or end a later transfer", () =>
    Effect.gen(function* () {
      const [alice, bob] = [yield* person(), yield* person()]
      const domainId = yield* domain(alice)
      const first = yield* offer(alice.id, domainId, bob.email)
      yield* accept(bob.id, first.id)
      yield* TestClock.adjust(day)
      const second = yield* offer(bob.id, domainId, alice.email)
      yield* feed(domainLine(domainId, alice))
      assert.strictEqual((yield* domainRow(domainId)).account_id, bob.id)
      assert.strictEqual((yield* outgoing(bob.id))[0]?.id, second.id)
      assert.strictEqual((yield* outgoing(bob.id))[0]?.status, "pending")
    }).pipe(timed))

  it.effect("a recipient without a workspace or disabled at the end: reversed; with another workspace: completed", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const transfers = yield* Transfers
      const ends = Effect.fnUntraced(
        function* (harm: (bob: string, chosen: string) => Effect.Effect<unknown, unknown>) {
          const [alice, bob, host] = [yield* person(), yield* person(), yield* person()]
          yield* seat(host.workspaceId, bob.id, "member")
          const { id } = yield* offer(alice.id, yield* domain(alice), bob.email)
          yield* accept(bob.id, id, { orgId: host.workspaceId })
          yield* Effect.orDie(harm(bob.id, host.workspaceId))
          yield* TestClock.adjust(day)
          assert.isTrue(yield* transfers.settle(id))
          const [ended] = yield* outgoing(alice.id)
          return { status: ended!.status, org: ended!.target_org_id, own: bob.workspaceId, chosen: host.workspaceId }
        },
      )
      const kept = yield* ends(() => Effect.void)
      assert.deepStrictEqual([kept.status, kept.org], ["completed", kept.chosen])
      const fallback = yield* ends((_, chosen) => sql`update workspaces set removed = true where id = ${chosen}::uuid`)
      assert.deepStrictEqual([fallback.status, fallback.org], ["completed", fallback.own])
      const alone = yield* ends((bob) =>
        sql`update workspace_memberships set removed = true where account_id = ${bob}::uuid`
      )
      assert.strictEqual(alone.status, "reversed")
      const disabled = yield* ends((bob) => sql`update accounts set status = 'disabled' where id = ${bob}::uuid`)
      assert.strictEqual(disabled.status, "reversed")
    }).pipe(timed))
})
