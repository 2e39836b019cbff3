import { assert, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { TestClock } from "effect/testing"
import { randomUUID } from "node:crypto"
import { DomainTransfer } from "../../../schemas/mail/Transfer.ts"
import { Database } from "../../../services/platform/Database.ts"
import { Transfers } from "../../../services/transfers/Transfers.ts"
import {
  accept,
  codeOf,
  command,
  day,
  domain,
  domainLine,
  domainRow,
  feed,
  force,
  hour,
  now,
  offer,
  person,
  published,
  seat,
  session,
  timed,
  tokenOf,
  world,
} from "./TransferWorld.ts"

const decodeList = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Array(DomainTransfer)))

const incoming = Effect.fnUntraced(function* (accountId: string) {
  return decodeList(yield* (yield* Transfers).incoming(session(accountId)))
})
const outgoing = Effect.fnUntraced(function* (accountId: string) {
  return decodeList(yield* (yield* Transfers).outgoing(session(accountId)))
})
const cancel = Effect.fnUntraced(function* (accountId: string, transferId: string) {
  return yield* (yield* Transfers).cancel({ ...command(), accountId, transferId })
})
const decline = Effect.fnUntraced(function* (accountId: string, transferId: string) {
  return yield* (yield* Transfers).decline({ ...command(), accountId, transferId })
})
const stop = Effect.fnUntraced(function* (transferId: string) {
  return yield* (yield* Transfers).stop({ ...command(), transferId })
})

layer(world(), { excludeTestServices: true, timeout: "60 seconds" })("Transfers", (it) => {
  it.effect("from the offer to the completed move, with everything that goes with it", () =>
    Effect.gen(function* () {
      const transfers = yield* Transfers
      const { sql } = yield* Database
      const [alice, bob] = [yield* person(), yield* person()]
      const domainId = yield* domain(alice)
      const [old, revoked] = [randomUUID(), randomUUID()]
      const credential = (id: string, revoked_at: string | null) => ({
        kind: "smtp_credential",
        id,
        domain_id: domainId,
        account_id: alice.id,
        username: "u",
        revoked_at,
      })
      yield* feed(credential(old, null), credential(revoked, "2025-01-01T00:00:00Z"))

      const made = yield* offer(alice.id, domainId, bob.email.toUpperCase(), "take it")
      const at = yield* now
      assert.deepStrictEqual(made, {
        id: made.id,
        domain_id: domainId,
        domain_name: `d-${domainId.slice(0, 8)}.example`,
        source_user_id: alice.id,
        source_org_id: alice.workspaceId,
        source_label: `Name of ${alice.id.slice(0, 4)}`,
        target_email: bob.email,
        target_user_id: bob.id,
        target_org_id: null,
        status: "pending",
        note: "take it",
        cooloff_until: null,
        initiated_at: new Date(at).toISOString(),
        accepted_at: null,
        completed_at: null,
        expires_at: new Date(at + 7 * day).toISOString(),
      })
      assert.deepStrictEqual(yield* incoming(bob.id), [made])
      assert.deepStrictEqual(yield* outgoing(alice.id), [made])
      assert.deepStrictEqual([yield* incoming(alice.id), yield* outgoing(bob.id)], [[], []])

      yield* TestClock.adjust("1 day")
      const found = yield* transfers.find("accept", yield* tokenOf("accept", made.id))
      assert.strictEqual(found?.id, made.id)
      const accepted = yield* accept(bob.id, made.id, { byToken: true, rotateDkim: true })
      assert.deepStrictEqual(accepted, {
        ...made,
        status: "accepted",
        target_org_id: bob.workspaceId,
        accepted_at: new Date(at + day).toISOString(),
        cooloff_until: new Date(at + 2 * day).toISOString(),
      })
      assert.strictEqual((yield* domainRow(domainId)).account_id, alice.id)
      assert.deepStrictEqual(yield* incoming(bob.id), [accepted])

      yield* TestClock.adjust("1 day")
      const [completed] = yield* outgoing(alice.id)
      assert.deepStrictEqual(completed, {
        ...accepted,
        status: "completed",
        cooloff_until: null,
        completed_at: new Date(at + 2 * day).toISOString(),
      })
      assert.deepStrictEqual(yield* incoming(bob.id), [])
      const moved = yield* domainRow(domainId)
      assert.deepStrictEqual([moved.account_id, moved.workspace_id, moved.owner_held], [bob.id, bob.workspaceId, true])
      assert.notStrictEqual(moved.dkim_selector, "old")
      const [key] = yield* sql<{ selector: string; public_key: string }>`
        select selector, public_key from dkim_keys where domain_id = ${domainId}::uuid`
      assert.strictEqual(key!.selector, moved.dkim_selector)
      const credentials = yield* sql<{ id: string; ours: boolean }>`
        select id::text as id, locally_revoked_at is not null as ours from smtp_credentials
        where domain_id = ${domainId}::uuid`
      assert.sameDeepMembers([...credentials], [{ id: old, ours: true }, { id: revoked, ours: false }])
      const told = yield* sql<{ subject: string; payload: string }>`
        select subject, payload from outbox where subject in (${`directory.v1.domain.${domainId}`},
          ${`directory.v1.smtp_credential.${old}`}, ${`directory.v1.smtp_credential.${revoked}`})`
      assert.sameMembers(told.map(({ subject }) => subject), [
        `directory.v1.domain.${domainId}`,
        `directory.v1.smtp_credential.${old}`,
      ])
      const change = JSON.parse(told.find(({ subject }) => subject.includes(".domain."))!.payload)
      assert.deepStrictEqual([change.account_id, change.workspace_id, change.dkim_selector, change.dkim_public_key], [
        bob.id,
        bob.workspaceId,
        key!.selector,
        key!.public_key,
      ])

      const messages = yield* published(domainId)
      assert.deepStrictEqual(messages.map(({ status }) => status), ["pending", "accepted", "completed"])
      assert.isTrue(messages.every(({ payload }) => !/@|take it|Name of/.test(payload)))
      const audit = yield* sql<{ action: string; subject: string; actor: string }>`
        select action, subject, actor from audit_records where details->>'transfer_id' = ${made.id} order by id`
      const both = [`account:${alice.id}`, `account:${bob.id}`]
      assert.deepStrictEqual(
        audit.map(({ action, subject }) => [action, subject]),
        ["initiated", "accepted", "completed"].flatMap((what) => both.map((side) => [`domain-transfer.${what}`, side])),
      )
      assert.deepStrictEqual(audit.map(({ actor }) => actor), [
        ...[both[0], both[0], both[1], both[1]],
        ...["system", "system"],
      ])
      const mails = yield* sql<{ kind: string; recipient: string }>`
        select kind, recipient from mails where subject_id = ${made.id} order by id`
      assert.sameDeepMembers(mails.map(({ kind, recipient }) => [kind, recipient]), [
        ["transfer.invitation", bob.email],
        ["transfer.stop", alice.email],
        ["transfer.completed", alice.email],
        ["transfer.completed", bob.email],
      ])
      assert.strictEqual((yield* sql`select from timers where aggregate_id = ${made.id}`).length, 0)

      // The new owner may hand it on, the old one may not even see it.
      assert.strictEqual(yield* codeOf(offer(alice.id, domainId, bob.email)), "not_found")
      assert.strictEqual((yield* offer(bob.id, domainId, alice.email)).status, "pending")
    }).pipe(timed))

  it.effect("initiate: every refusal, in order", () =>
    Effect.gen(function* () {
      const transfers = yield* Transfers
      const [alice, bob, eve] = [yield* person(), yield* person(), yield* person()]
      const [admin, member] = [yield* person(), yield* person()]
      yield* seat(alice.workspaceId, admin.id, "admin")
      yield* seat(alice.workspaceId, member.id, "member")
      const gone = yield* person({ status: "disabled" })
      const unverified = { verified_at: null }
      const domainId = yield* domain(alice, unverified)
      const code = (who: string, to: string, id = domainId) => codeOf(offer(who, id, to))
      assert.strictEqual(yield* code(alice.id, bob.email, randomUUID()), "not_found")
      assert.strictEqual(yield* code(eve.id, bob.email), "not_found")
      assert.strictEqual(yield* code(member.id, bob.email), "forbidden")
      assert.strictEqual(yield* codeOf(transfers.admit(eve.id, domainId)), "not_found")
      assert.strictEqual(yield* codeOf(transfers.admit(member.id, domainId)), "forbidden")
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

  it.effect("the limit: what reaches it counts, whatever comes of it; what does not, does not", () =>
    Effect.gen(function* () {
      const transfers = yield* Transfers
      const [alice, member] = [yield* person(), yield* person()]
      yield* seat(alice.workspaceId, member.id, "member")
      const domainId = yield* domain(alice)
      const admit = (who: string, id = domainId) => codeOf(transfers.admit(who, id))
      for (let i = 0; i < 10; i++) {
        assert.strictEqual(yield* admit(alice.id, randomUUID()), "not_found")
        assert.strictEqual(yield* admit(member.id), "forbidden")
      }
      for (let i = 0; i < 5; i++) assert.strictEqual(yield* admit(alice.id), "done")
      for (let i = 0; i < 3; i++) assert.strictEqual(yield* admit(alice.id), "rate_limited")
      const refused = yield* Effect.flip(transfers.admit(alice.id, domainId))
      assert.deepInclude(refused, { retry_after: 60, limit: 5, window_seconds: 60 })
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* admit(alice.id), "done")
    }).pipe(timed))

  it.effect("accept: every refusal, in order", () =>
    Effect.gen(function* () {
      const transfers = yield* Transfers
      const [alice, bob, eve] = [yield* person({ plan: "pro" }), yield* person({ plan: "starter" }), yield* person()]
      const other = yield* person()
      const { id } = yield* offer(alice.id, yield* domain(alice), bob.email)
      assert.isNull(yield* transfers.find("accept", "x".repeat(43)))
      assert.strictEqual(yield* codeOf(accept(bob.id, randomUUID())), "not_found")
      assert.strictEqual(yield* codeOf(accept(eve.id, id)), "wrong_recipient")
      assert.strictEqual(yield* codeOf(accept(alice.id, id, { byToken: true })), "wrong_recipient")
      for (const orgId of ["", "no uuid", randomUUID(), other.workspaceId]) {
        assert.strictEqual(yield* codeOf(accept(bob.id, id, { orgId })), "org_access_lost", orgId)
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
      assert.strictEqual(yield* codeOf(accept(bob.id, second.id, { orgId: "x" })), "org_access_lost")
      assert.strictEqual(yield* codeOf(accept(bob.id, second.id)), "domain_limit")
      assert.strictEqual(yield* codeOf(accept(bob.id, id, { byToken: true })), "not_found")
      assert.strictEqual(yield* codeOf(accept(bob.id, id)), "not_pending")
      assert.strictEqual(yield* codeOf(accept(eve.id, id)), "wrong_recipient")
      yield* feed({ kind: "domain", id: owned[0]!, removed: true })
      assert.strictEqual((yield* accept(bob.id, second.id)).status, "accepted")
      // Accepted by its id: the token was not used, and is of no use.
      assert.strictEqual(yield* codeOf(accept(bob.id, second.id, { byToken: true })), "not_pending")
      yield* TestClock.adjust(7 * day)
      assert.strictEqual(yield* codeOf(accept(eve.id, third.id)), "wrong_recipient")
      assert.strictEqual(yield* codeOf(accept(bob.id, third.id, { byToken: true, orgId: "x" })), "expired")
      assert.strictEqual(yield* codeOf(accept(bob.id, third.id)), "expired")
      assert.strictEqual(yield* codeOf(decline(bob.id, third.id)), "not_pending")
      assert.strictEqual(yield* codeOf(cancel(alice.id, third.id)), "not_pending")
    }).pipe(timed))

  it.effect("accept needs the account that was found at initiation, under the same address", () =>
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

  it.effect("a recipient without a workspace can not accept, and hears so before", () =>
    Effect.gen(function* () {
      const transfers = yield* Transfers
      const [alice, bob] = [yield* person(), yield* person()]
      const { id } = yield* offer(alice.id, yield* domain(alice), bob.email)
      const { sql } = yield* Database
      yield* sql`update workspace_memberships set removed = true where account_id = ${bob.id}::uuid`
      assert.strictEqual(yield* codeOf(accept(bob.id, id)), "org_access_lost")
      assert.deepInclude(yield* transfers.eligibility(bob.id), { can_accept: false, code: "org_access_lost" })
      yield* seat(alice.workspaceId, bob.id, "member")
      assert.strictEqual((yield* accept(bob.id, id)).target_org_id, alice.workspaceId)
    }).pipe(timed))

  it.effect("decline and cancel: who may, and who is not even told that there is something", () =>
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

  it.effect("stop: until the last millisecond of the window, once", () =>
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
      // The command that came before the timer did the timer's work.
      assert.strictEqual((yield* domainRow(domainId)).account_id, bob.id)
    }).pipe(timed))

  it.effect("a link explains itself: what it is about, whether it was used, and what the clock made of it", () =>
    Effect.gen(function* () {
      const transfers = yield* Transfers
      const [alice, bob] = [yield* person(), yield* person()]
      const domainId = yield* domain(alice)
      const { id } = yield* offer(alice.id, domainId, bob.email)
      const invitation = yield* tokenOf("accept", id)
      const seen = (link: "accept" | "stop", token: string) =>
        Effect.map(transfers.preview(link, token), (shown) => shown && [shown.transfer.status, shown.used])
      assert.deepStrictEqual(yield* seen("accept", invitation), ["pending", false])
      assert.isNull(yield* seen("stop", invitation))
      yield* accept(bob.id, id, { byToken: true })
      const stopping = yield* tokenOf("stop", id)
      assert.deepStrictEqual(yield* seen("accept", invitation), ["accepted", true])
      assert.deepStrictEqual(yield* seen("stop", stopping), ["accepted", false])
      yield* TestClock.adjust(day)
      assert.deepStrictEqual(yield* seen("stop", stopping), ["completed", false])
      assert.strictEqual((yield* domainRow(domainId)).account_id, bob.id)
      const next = yield* offer(bob.id, domainId, alice.email)
      const unanswered = yield* tokenOf("accept", next.id)
      yield* TestClock.adjust(7 * day)
      assert.deepStrictEqual(yield* seen("accept", unanswered), ["expired", false])
    }).pipe(timed))

  it.effect("a command that comes a second time, its answer lost, is answered as the first", () =>
    Effect.gen(function* () {
      const transfers = yield* Transfers
      const [alice, bob, carol] = [yield* person(), yield* person(), yield* person({ platform_admin: true })]
      const domainId = yield* domain(alice)
      const twice = Effect.fnUntraced(function* <A, E>(effect: Effect.Effect<A, E>) {
        const first = yield* effect
        assert.deepStrictEqual(yield* effect, first)
        return first
      })
      const offered = { ...command(), accountId: alice.id, domainId, targetEmail: bob.email, note: null }
      const { id } = yield* twice(transfers.initiate(offered))
      const accepted = {
        ...command(),
        accountId: bob.id,
        transferId: id,
        byToken: true,
        orgId: null,
        rotateDkim: false,
      }
      yield* twice(transfers.accept(accepted))
      yield* twice(transfers.stop({ ...command(), transferId: id }))
      const forced = { ...command(), accountId: carol.id, domainId, targetEmail: bob.email, rotateDkim: true }
      yield* twice(transfers.force(forced))
      assert.strictEqual((yield* published(domainId)).length, 4)
    }).pipe(timed))

  it.effect("force: at once, whatever lives, and only what must be asked is asked", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const [alice, bob, carol] = [yield* person(), yield* person(), yield* person({ platform_admin: true })]
      const lonely = yield* person()
      yield* sql`update workspace_memberships set removed = true where account_id = ${lonely.id}::uuid`
      yield* domain(bob)
      const domainId = yield* domain(alice, { verified_at: null })
      assert.strictEqual(yield* codeOf(force(carol.id, randomUUID(), bob.email)), "not_found")
      assert.strictEqual(yield* codeOf(force(carol.id, domainId, "nobody@example.com")), "target_not_found")
      assert.strictEqual(yield* codeOf(force(carol.id, domainId, alice.email)), "self_transfer")
      assert.strictEqual(yield* codeOf(force(carol.id, domainId, lonely.email)), "org_access_lost")
      yield* feed(domainLine(domainId, alice))
      const pending = yield* offer(alice.id, domainId, bob.email)
      // Bob's plan is full: a force does not ask.
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
        ["transfer.cancelled", alice.email],
        ["transfer.cancelled", bob.email],
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

  it.effect("the feed takes the domain away: the transfer ends in the feed's own transaction, both sides told", () =>
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

  it.effect("after a completion the feed's old word does not bring the owner back, and ends no later transfer", () =>
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

  it.effect("a recipient who can not take it any more at the end: reversed, both told", () =>
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

  it.effect("a list settles ten and shows the rest as accepted, never as completed before the move", () =>
    Effect.gen(function* () {
      const [alice, bob] = [yield* person({ plan: "business" }), yield* person({ plan: "business" })]
      for (let i = 0; i < 12; i++) {
        const { id } = yield* offer(alice.id, yield* domain(alice), bob.email)
        yield* accept(bob.id, id)
      }
      yield* TestClock.adjust(day)
      const statuses = Effect.map(outgoing(alice.id), (all) => all.map(({ status }) => status))
      const counted = (all: ReadonlyArray<string>, status: string) => all.filter((one) => one === status).length
      const first = yield* statuses
      assert.deepStrictEqual([counted(first, "completed"), counted(first, "accepted")], [10, 2])
      assert.strictEqual(counted(yield* statuses, "completed"), 12)
    }).pipe(timed))

  it.effect("no token, note or address stands in audit, outbox or a mail's row", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const [alice, bob] = [yield* person(), yield* person()]
      const { id } = yield* offer(alice.id, yield* domain(alice), bob.email, "our secret word")
      yield* accept(bob.id, id)
      const tokens = [yield* tokenOf("accept", id), yield* tokenOf("stop", id)]
      for (const text of [...tokens, "our secret word"]) {
        const like = `%${text}%`
        const [found] = yield* sql<{ n: number }>`
          select (select count(*)::int from audit_records a where a::text like ${like})
            + (select count(*)::int from outbox o where o::text like ${like})
            + (select count(*)::int from mails m where m::text like ${like})
            + (select count(*)::int from notifications n where n::text like ${like}) as n`
        assert.strictEqual(found!.n, 0)
      }
      const [row] = yield* sql<{ text: string }>`select t::text as text from transfers t where id = ${id}::uuid`
      for (const token of tokens) assert.notInclude(row!.text, token)
      yield* TestClock.adjust(hour)
    }).pipe(timed))
})
