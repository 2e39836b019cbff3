import { assert, layer } from "@effect/vitest"
import { Effect, Exit, Layer } from "effect"
import { TestClock } from "effect/testing"
import { WakeUps } from "../../../../services/platform/messaging/WakeUps.ts"
import { Bus } from "../../../../services/platform/messaging/Bus.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import { runOnce } from "../../../../services/platform/database/UnitOfWork.ts"
import { type ClaimedMail, Mails } from "../../../../services/platform/mail/Mails.ts"
import { Outbox } from "../../../../services/platform/messaging/Outbox.ts"
import { TestBus } from "../../../support/TestBus.ts"
import { TestDatabase } from "../../../support/TestDatabase.ts"

const platform = Mails.layer.pipe(
  Layer.provideMerge(Outbox.layer),
  Layer.provideMerge(WakeUps.layer),
  Layer.provideMerge(Layer.unwrap(Effect.map(TestBus.make, ({ url }) => Bus.layer({ url })))),
  Layer.provideMerge(TestDatabase.layer),
)

const minute = 60_000
const mail = (kind: string) => ({
  kind,
  subjectId: "d1",
  recipient: "a@example.com",
  args: { side: "source", n: null },
})
const row = (id: string) =>
  Effect.gen(function* () {
    const { sql } = yield* Database
    const [found] = yield* sql<{
      state: string
      attempts: number
      doubts: number
      not_before: Date | null
      claim: bigint | null
      sent_at: Date | null
      ended_at: Date | null
      message_id: string | null
      last_error: string | null
    }>`select * from mails where id = ${id}::uuid`
    return found!
  })

/** One mail of a kind of its own, and how this test claims it. */
const added = Effect.fnUntraced(function* (kind: string) {
  const mails = yield* Mails
  const [id] = yield* mails.add(mail(kind))
  const claim = Effect.map(mails.mailer.claim({ kinds: [kind], limit: 10 }), ([claimed]) => claimed)
  return { id: id!, claim, mails }
})

layer(platform)("Mails", (it) => {
  it.effect("a mail is a row and a message with its id alone, both in the caller's transaction", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const mails = yield* Mails
      const [id] = yield* mails.add(mail("added"))
      const [sent] = yield* sql<{ payload: string; subject: string }>`
        select payload, subject from outbox where payload like ${`%${id}%`}`
      assert.deepStrictEqual(sent, { payload: JSON.stringify({ mail_id: id }), subject: "mailer.v1.send" })
      const exit = yield* Effect.exit(sql.withTransaction(Effect.andThen(mails.add(mail("undone")), Effect.fail("no"))))
      assert.isTrue(Exit.isFailure(exit))
      assert.deepStrictEqual(yield* mails.mailer.claim({ kinds: ["undone", "other"], limit: 10 }), [])
      assert.deepStrictEqual(yield* mails.mailer.claim({ kinds: ["added"], limit: 10, ids: [] }), [])
      const [claimed] = yield* mails.mailer.claim({ kinds: ["added"], limit: 10, ids: [id!] })
      assert.deepInclude(claimed, {
        id: id!,
        subject_id: "d1",
        recipient: "a@example.com",
        args: { side: "source", n: null },
      })
      assert.deepStrictEqual(yield* mails.mailer.claim({ kinds: ["added"], limit: 10 }), [])
    }))

  it.effect("the mails of one transaction are one message, of at most 200 ids", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const mails = yield* Mails
      const several = (count: number) => mails.add(...Array.from({ length: count }, () => mail("together")))
      const ids = (yield* runOnce(Effect.all([several(1), several(2), several(198), several(250)]))).flat()
      const sent = yield* sql<{ ids: ReadonlyArray<string> }>`
        select payload::json -> 'mail_ids' as ids from outbox where stream = 'MAIL_OUT' and payload like '%mail_ids%'`
      assert.deepStrictEqual(sent.map((one) => one.ids.length).sort((a, b) => a - b), [3, 50, 198, 200])
      assert.deepStrictEqual(sent.find((one) => one.ids.length === 3)?.ids, ids.slice(0, 3))
      assert.sameMembers(sent.flatMap((one) => one.ids), ids)
    }))

  it.effect("any text is kept, as far as a database can store it", () =>
    Effect.gen(function* () {
      const mails = yield* Mails
      const odd = {
        kind: "odd",
        subjectId: "d\0",
        recipient: "a\0@example.com",
        args: { name: "\0\ud800 ☃ \u2028'\"\\" },
      }
      yield* mails.add(odd)
      const [claimed] = yield* mails.mailer.claim({ kinds: ["odd"], limit: 1 })
      assert.deepInclude(claimed, { subject_id: "d", recipient: "a@example.com" })
      assert.deepStrictEqual(claimed!.args, { name: "\ufffd ☃ \u2028'\"\\" })
    }))

  it.effect("a refused mail is tried eight times within a day, then given up", () =>
    Effect.gen(function* () {
      const { claim, id, mails } = yield* added("later")
      let tries = 0
      let waited = 0
      for (let claimed = yield* claim; claimed !== undefined; claimed = yield* claim) {
        tries++
        const before = (yield* row(id)).not_before!.getTime()
        yield* mails.mailer.settle(claimed, { _tag: "Later", error: "451 busy\0" })
        const due = (yield* row(id)).not_before
        if (due === null) break
        assert.strictEqual(yield* claim, undefined)
        waited += due.getTime() - before
        yield* TestClock.setTime(due.getTime())
      }
      assert.strictEqual(tries, 8)
      assert.isBelow(waited, 24 * 60 * minute)
      assert.isAbove(waited, 20 * 60 * minute)
      assert.deepInclude(yield* row(id), { state: "failed", last_error: "451 busy", claim: null })
      assert.isAtLeast((yield* mails.diagnostics).failed, 1)
    }))

  it.effect("a mail with an unknown outcome is repeated once, after ten minutes, under the same Message-ID", () =>
    Effect.gen(function* () {
      const { claim, id, mails } = yield* added("unknown")
      const first = (yield* claim)!
      assert.strictEqual(yield* mails.mailer.startSending(first, "<1@x>"), "<1@x>")
      yield* mails.mailer.settle(first, { _tag: "Unknown", error: "cut" })
      assert.deepInclude(yield* row(id), { state: "unknown", doubts: 1 })
      assert.isAtLeast((yield* mails.diagnostics).unknown, 1)
      yield* TestClock.adjust(10 * minute - 1)
      assert.strictEqual(yield* claim, undefined)
      yield* TestClock.adjust(1)
      const again = (yield* claim)!
      // A refusal before DATA was no repeat: the server was not handed the message.
      assert.strictEqual(yield* mails.mailer.startSending(again, "<2@x>"), "<1@x>")
      yield* mails.mailer.settle(again, { _tag: "Later", error: "421" })
      assert.deepInclude(yield* row(id), { state: "unknown", doubts: 1 })
      yield* TestClock.adjust(5 * minute)
      const third = (yield* claim)!
      yield* mails.mailer.startSending(third, "<3@x>")
      yield* mails.mailer.settle(third, { _tag: "Unknown", error: "cut again" })
      assert.deepInclude(yield* row(id), { state: "unknown", doubts: 2, not_before: null, message_id: "<1@x>" })
    }))

  it.effect("a mail of a process that died is unknown only if its sending had begun", () =>
    Effect.gen(function* () {
      const { claim, id, mails } = yield* added("killed")
      const first = (yield* claim)!
      yield* TestClock.adjust(3 * minute + 1)
      yield* mails.mailer.free
      assert.deepInclude(yield* row(id), { state: "pending", doubts: 0, claim: null, last_error: "interrupted" })
      // The claim has passed to another process.
      assert.strictEqual(yield* mails.mailer.startSending(first, "<1@x>"), null)
      yield* TestClock.adjust(minute)
      const second = (yield* claim)!
      yield* mails.mailer.startSending(second, "<1@x>")
      yield* TestClock.adjust(3 * minute + 1)
      yield* mails.mailer.free
      assert.deepInclude(yield* row(id), { state: "unknown", doubts: 1, claim: null })
      yield* mails.mailer.settle(second, { _tag: "Sent" })
      assert.strictEqual((yield* row(id)).state, "unknown")
      // Ten minutes from its beginning, three of which the lease took.
      yield* TestClock.adjust(7 * minute - 2)
      assert.strictEqual(yield* claim, undefined)
      yield* TestClock.adjust(1)
      yield* mails.mailer.settle((yield* claim)!, { _tag: "Sent" })
      const sent = yield* row(id)
      assert.deepInclude(sent, { state: "sent", not_before: null, last_error: null })
      assert.isNotNull(sent.sent_at)
    }))

  it.effect("a mail refused for good or without content ends, and is deleted after 90 days", () =>
    Effect.gen(function* () {
      const refused = yield* added("refused")
      yield* refused.mails.mailer.settle((yield* refused.claim)!, { _tag: "Refused", error: "550 no such user" })
      assert.deepInclude(yield* row(refused.id), { state: "failed", not_before: null })
      const dropped = yield* added("dropped")
      yield* dropped.mails.mailer.settle((yield* dropped.claim) as ClaimedMail, { _tag: "Dropped" })
      assert.deepInclude(yield* row(dropped.id), { state: "dropped", not_before: null })
      const { sql } = yield* Database
      const age = (days: number) =>
        sql`update mails set ended_at = ended_at - ${days} * interval '1 day' where id = ${dropped.id}::uuid`
      yield* age(89)
      yield* dropped.mails.mailer.prune
      assert.isDefined(yield* row(dropped.id))
      yield* age(2)
      // An hour's prune must keep up with an hour's mails, however many.
      yield* sql`insert into mails (id, kind, subject_id, recipient, args, state, created_at, ended_at)
        select gen_random_uuid(), kind, subject_id, recipient, args, state, created_at, ended_at
        from mails, generate_series(1, 2500) where id = ${dropped.id}::uuid`
      yield* dropped.mails.mailer.prune
      assert.isUndefined(yield* row(dropped.id))
      assert.lengthOf(yield* sql`select from mails where kind = 'dropped'`, 0)
    }))
})
