import { assert, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { TestClock } from "effect/testing"
import { randomUUID } from "node:crypto"
import type { AccountId } from "../../../schemas/BrandedIds.ts"
import { DomainTransfer } from "../../../schemas/mail/Transfer.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { Transfers } from "../../../services/transfers/Transfers.ts"
import { counting } from "../../support/Statements.ts"
import { day, hour } from "../../support/Fixtures.ts"
import {
  accept,
  codeOf,
  command,
  domain,
  domainRow,
  feed,
  fixture,
  now,
  offer,
  person,
  published,
  session,
  timed,
  tokenOf,
} from "./TransferFixture.ts"

const decodeList = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Array(DomainTransfer)))

const incoming = Effect.fnUntraced(function* (accountId: AccountId) {
  return decodeList(yield* (yield* Transfers).incoming(session(accountId)))
})
const outgoing = Effect.fnUntraced(function* (accountId: AccountId) {
  return decodeList(yield* (yield* Transfers).outgoing(session(accountId)))
})

layer(fixture(), { excludeTestServices: true, timeout: "2 minutes" })("Transfers", (it) => {
  it.effect("from the offer to the completed move, with all rows, messages, mails and audit records", () =>
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
        ["transfer.key", bob.email],
        ["transfer.completed", alice.email],
        ["transfer.completed", bob.email],
      ])
      assert.strictEqual((yield* sql`select from timers where aggregate_id = ${made.id}`).length, 0)

      // The new owner may offer it; the old owner may not even see it.
      assert.strictEqual(yield* codeOf(offer(alice.id, domainId, bob.email)), "not_found")
      assert.strictEqual((yield* offer(bob.id, domainId, alice.email)).status, "pending")
    }).pipe(timed))

  it.effect("a link's preview shows the status, whether the link was used, and due transitions", () =>
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

  it.effect("a command that is sent again after a lost answer gets the first answer", () =>
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

  it.effect("a list writes ten due transitions and shows the others as accepted until their domains have moved", () =>
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

  it.effect("a command is two statements if nothing is overdue; locating a known transfer is none", () =>
    Effect.gen(function* () {
      const transfers = yield* Transfers
      const [alice, bob] = [yield* person(), yield* person()]
      const domainId = yield* domain(alice)
      const [offered, { id }] = yield* counting(offer(alice.id, domainId, bob.email))
      const [accepted] = yield* counting(accept(bob.id, id))
      const [stopped, { status }] = yield* counting(transfers.stop({ ...command(), transferId: id }))
      assert.strictEqual(status, "reversed")
      const [located, ids] = yield* counting(transfers.locate("id", id))
      assert.deepStrictEqual(ids, { transferId: id, domainId })
      assert.deepStrictEqual({ offered, located, accepted, stopped }, {
        offered: 2,
        located: 0,
        accepted: 2,
        stopped: 2,
      })
    }).pipe(timed))

  it.effect("no token or note is in audit, outbox, mails or notices, and no token in the transfer's row", () =>
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
