import { assert, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { TestClock } from "effect/testing"
import { randomUUID } from "node:crypto"
import { type AccountId, DomainId, TransferId, WorkspaceId } from "../../../schemas/BrandedIds.ts"
import { DomainTransfer } from "../../../schemas/mail/Transfer.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { Transfers } from "../../../services/transfers/Transfers.ts"
import { day } from "../../support/Fixtures.ts"
import {
  accept,
  codeOf,
  command,
  domain,
  domainLine,
  feed,
  fixture,
  offer,
  person,
  published,
  seat,
  session,
  timed,
} from "./TransferFixture.ts"

const decodeList = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Array(DomainTransfer)))

const incoming = Effect.fnUntraced(function* (accountId: AccountId) {
  return decodeList(yield* (yield* Transfers).incoming(session(accountId)))
})
const cancel = Effect.fnUntraced(function* (accountId: AccountId, transferId: TransferId) {
  return yield* (yield* Transfers).cancel({ ...command(), accountId, transferId })
})
const decline = Effect.fnUntraced(function* (accountId: AccountId, transferId: TransferId) {
  return yield* (yield* Transfers).decline({ ...command(), accountId, transferId })
})

layer(fixture(), { excludeTestServices: true, timeout: "2 minutes" })("refusals", (it) => {
  it.effect("initiate: every refusal, in order", () =>
    Effect.gen(function* () {
      const [alice, bob, eve] = [yield* person(), yield* person(), yield* person()]
      const [admin, member] = [yield* person(), yield* person()]
      yield* seat(alice.workspaceId, admin.id, "admin")
      yield* seat(alice.workspaceId, member.id, "member")
      const gone = yield* person({ status: "disabled" })
      const unverified = { verified_at: null }
      const domainId = yield* domain(alice, unverified)
      const code = (who: AccountId, to: string, id = domainId) => codeOf(offer(who, id, to))
      assert.strictEqual(yield* code(alice.id, bob.email, DomainId.make(randomUUID())), "not_found")
      assert.strictEqual(yield* code(eve.id, bob.email), "not_found")
      assert.strictEqual(yield* code(member.id, bob.email), "forbidden")
      assert.strictEqual(yield* code(alice.id, "nobody"), "domain_not_verified")
      yield* feed(domainLine(domainId, alice))
      for (
        const to of [
          "nobody",
          "",
          "nobody@example.com",
          gone.email,
          `${bob.email} `,
          bob.email.replace("k", "\u212a") + "\u212a",
        ]
      ) {
        assert.strictEqual(yield* code(alice.id, to), "target_not_found", to)
      }
      assert.strictEqual(yield* code(alice.id, alice.email), "self_transfer")
      assert.strictEqual(yield* code(admin.id, alice.email), "self_transfer")
      assert.strictEqual(yield* code(admin.id, admin.email), "self_transfer")
      const broadcast = (status: string) => ({
        kind: "broadcast",
        id: broadcastId,
        domain_id: domainId,
        name: "News",
        status,
        scheduled_at: "2026-04-01T10:00:00Z",
      })
      const [broadcastId, mailId] = [randomUUID(), randomUUID()]
      const mail = (status: string) => ({
        kind: "scheduled_email",
        id: mailId,
        domain_id: domainId,
        subject: "Hello",
        scheduled_at: "2026-04-01T10:00:00Z",
        status,
      })
      yield* feed(broadcast("sending"), mail("scheduled"))
      const blocked = yield* Effect.flip(offer(alice.id, domainId, bob.email))
      assert.deepInclude(blocked, {
        code: "broadcasts_in_flight",
        status: 409,
        blockers: [{
          kind: "broadcast",
          id: broadcastId,
          name: "News",
          status: "sending",
          scheduled_at: "2026-04-01T10:00:00.000Z",
        }],
      })
      yield* feed(broadcast("cancelled"))
      const scheduled = yield* Effect.flip(offer(alice.id, domainId, bob.email))
      assert.deepInclude(scheduled, {
        code: "scheduled_emails",
        blockers: [{
          kind: "scheduled_email",
          id: mailId,
          name: "Hello",
          status: "scheduled",
          scheduled_at: "2026-04-01T10:00:00.000Z",
        }],
      })
      yield* feed(mail("sent"))
      const made = yield* offer(admin.id, domainId, bob.email)
      assert.deepStrictEqual([made.source_user_id, made.note], [alice.id, null])
      yield* feed(broadcast("scheduled"))
      assert.strictEqual(yield* code(alice.id, bob.email), "transfer_active")
      const { sql } = yield* Database
      const mails = yield* sql`select kind, recipient from mails where subject_id = ${made.id} order by kind`
      assert.deepStrictEqual([...mails], [
        { kind: "transfer.invitation", recipient: bob.email },
        { kind: "transfer.offered", recipient: alice.email },
      ])
    }).pipe(timed))

  it.effect("accept: every refusal, in order", () =>
    Effect.gen(function* () {
      const transfers = yield* Transfers
      const [alice, bob, eve] = [yield* person({ plan: "pro" }), yield* person({ plan: "starter" }), yield* person()]
      const other = yield* person()
      const { id } = yield* offer(alice.id, yield* domain(alice), bob.email)
      assert.isNull(yield* transfers.find("accept", "x".repeat(43)))
      assert.strictEqual(yield* codeOf(accept(bob.id, TransferId.make(randomUUID()))), "not_found")
      assert.strictEqual(yield* codeOf(accept(eve.id, id)), "wrong_recipient")
      assert.strictEqual(yield* codeOf(accept(alice.id, id, { byToken: true })), "wrong_recipient")
      for (const orgId of ["", "no uuid", randomUUID(), other.workspaceId]) {
        assert.strictEqual(
          yield* codeOf(accept(bob.id, id, { orgId: WorkspaceId.make(orgId) })),
          "org_access_lost",
          orgId,
        )
      }
      const owned = yield* Effect.forEach([1, 2, 3, 4], () => domain(bob))
      const second = yield* offer(alice.id, yield* domain(alice), bob.email)
      const third = yield* offer(alice.id, yield* domain(alice), bob.email)
      assert.strictEqual((yield* transfers.eligibility(bob.id)).can_accept, true)
      assert.strictEqual((yield* accept(bob.id, id, { byToken: true, orgId: bob.workspaceId })).status, "accepted")
      assert.deepStrictEqual(yield* transfers.eligibility(bob.id), {
        can_accept: false,
        code: "domain_limit",
        message: "Your plan allows 5 domains.",
        current_domains: 4,
        domain_limit: 5,
      })
      assert.strictEqual(yield* codeOf(accept(bob.id, second.id, { orgId: WorkspaceId.make("x") })), "org_access_lost")
      assert.strictEqual(yield* codeOf(accept(bob.id, second.id)), "domain_limit")
      assert.strictEqual(yield* codeOf(accept(bob.id, id, { byToken: true })), "not_found")
      assert.strictEqual(yield* codeOf(accept(bob.id, id)), "not_pending")
      assert.strictEqual(yield* codeOf(accept(eve.id, id)), "wrong_recipient")
      yield* feed({ kind: "domain", id: owned[0]!, removed: true })
      assert.strictEqual((yield* accept(bob.id, second.id)).status, "accepted")
      // Accepted by its id: the token is unused, and no longer works.
      assert.strictEqual(yield* codeOf(accept(bob.id, second.id, { byToken: true })), "not_pending")
      yield* TestClock.adjust(7 * day)
      assert.strictEqual(yield* codeOf(accept(eve.id, third.id)), "wrong_recipient")
      assert.strictEqual(
        yield* codeOf(accept(bob.id, third.id, { byToken: true, orgId: WorkspaceId.make("x") })),
        "expired",
      )
      assert.strictEqual(yield* codeOf(accept(bob.id, third.id)), "expired")
      assert.strictEqual(yield* codeOf(decline(bob.id, third.id)), "not_pending")
      assert.strictEqual(yield* codeOf(cancel(alice.id, third.id)), "not_pending")
    }).pipe(timed))

  it.effect("accept needs the account that was found at the initiation, with the same address", () =>
    Effect.gen(function* () {
      const [alice, bob] = [yield* person(), yield* person()]
      const { id } = yield* offer(alice.id, yield* domain(alice), bob.email)
      const { sql } = yield* Database
      yield* sql`update accounts set email = ${`new-${bob.email}`} where id = ${bob.id}::uuid`
      assert.deepStrictEqual(yield* incoming(bob.id), [])
      const heir = yield* person({ email: bob.email })
      assert.strictEqual(yield* codeOf(accept(heir.id, id, { byToken: true })), "wrong_recipient")
      assert.strictEqual(yield* codeOf(accept(bob.id, id, { byToken: true })), "wrong_recipient")
      yield* sql`update accounts set email = ${bob.email.toUpperCase()} where id = ${bob.id}::uuid`
      assert.strictEqual((yield* incoming(bob.id)).length, 1)
      assert.strictEqual((yield* accept(bob.id, id)).status, "accepted")
    }).pipe(timed))

  it.effect("a recipient without a workspace cannot accept; the eligibility check considers the plan only", () =>
    Effect.gen(function* () {
      const transfers = yield* Transfers
      const [alice, bob] = [yield* person(), yield* person()]
      const { id } = yield* offer(alice.id, yield* domain(alice), bob.email)
      const { sql } = yield* Database
      yield* sql`update workspace_memberships set removed = true where account_id = ${bob.id}::uuid`
      assert.strictEqual(yield* codeOf(accept(bob.id, id)), "org_access_lost")
      // The check considers only the plan (specification, accept eligibility object).
      assert.deepInclude(yield* transfers.eligibility(bob.id), { can_accept: true, code: null, message: null })
      yield* seat(alice.workspaceId, bob.id, "member")
      assert.strictEqual((yield* accept(bob.id, id)).target_org_id, alice.workspaceId)
    }).pipe(timed))

  it.effect("decline and cancel: allowed callers, refused ones, and 404 for strangers", () =>
    Effect.gen(function* () {
      const [alice, bob, eve] = [yield* person(), yield* person(), yield* person()]
      const [admin, member] = [yield* person(), yield* person()]
      yield* seat(alice.workspaceId, admin.id, "admin")
      yield* seat(alice.workspaceId, member.id, "member")
      const domainId = yield* domain(alice)
      const first = yield* offer(alice.id, domainId, bob.email)
      assert.strictEqual(yield* codeOf(decline(eve.id, first.id)), "not_found")
      assert.strictEqual(yield* codeOf(cancel(eve.id, first.id)), "not_found")
      assert.strictEqual(yield* codeOf(decline(alice.id, first.id)), "wrong_recipient")
      assert.strictEqual(yield* codeOf(decline(member.id, first.id)), "wrong_recipient")
      assert.strictEqual(yield* codeOf(cancel(bob.id, first.id)), "forbidden")
      assert.strictEqual(yield* codeOf(cancel(member.id, first.id)), "forbidden")
      assert.strictEqual((yield* decline(bob.id, first.id)).status, "declined")
      assert.strictEqual(yield* codeOf(decline(bob.id, first.id)), "not_pending")
      assert.strictEqual(yield* codeOf(accept(bob.id, first.id, { byToken: true })), "not_pending")
      const second = yield* offer(alice.id, domainId, bob.email)
      assert.strictEqual((yield* cancel(admin.id, second.id)).status, "cancelled")
      const third = yield* offer(alice.id, domainId, bob.email)
      yield* accept(bob.id, third.id)
      assert.strictEqual(yield* codeOf(cancel(alice.id, third.id)), "not_pending")
      assert.strictEqual(yield* codeOf(decline(bob.id, third.id)), "not_pending")
      const { sql } = yield* Database
      const mails = yield* sql<{ kind: string; recipient: string }>`
        select kind, recipient from mails where kind in ('transfer.declined', 'transfer.cancelled')
          and subject_id in (${first.id}, ${second.id}) order by id`
      assert.deepStrictEqual(mails.map(({ kind, recipient }) => [kind, recipient]), [
        ["transfer.declined", alice.email],
        ["transfer.cancelled", bob.email],
      ])
      assert.deepStrictEqual((yield* published(domainId)).map(({ status }) => status), [
        ...["pending", "declined", "pending", "cancelled", "pending", "accepted"],
      ])
    }).pipe(timed))
})
