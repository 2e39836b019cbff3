import { assert, layer } from "@effect/vitest"
import { Clock, Context, Deferred, Effect, Exit, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { WakeUps } from "../../../../services/platform/messaging/WakeUps.ts"
import { Bus } from "../../../../services/platform/messaging/Bus.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import { runOnce } from "../../../../services/platform/database/UnitOfWork.ts"
import { Mails, type MailTemplate, MailTemplates } from "../../../../services/platform/mail/Mails.ts"
import { MailTransport, type OutgoingMail } from "../../../../services/platform/mail/MailTransport.ts"
import { OutgoingMails } from "../../../../services/platform/mail/OutgoingMails.ts"
import type { MessageOutcome } from "../../../../services/platform/messaging/Outgoing.ts"
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

/** What sends the mails of these kinds: `render` makes them, `deliver` takes them. */
const sender = Effect.fnUntraced(function* (
  kinds: ReadonlyArray<string>,
  deliver: (mail: OutgoingMail) => Effect.Effect<MessageOutcome>,
  render: MailTemplate["render"] = () => Effect.succeed({ subject: "About", text: "About", html: "<p>About</p>" }),
) {
  const from = { name: "Bailiwick", address: "no-reply@mail.example" }
  const context = yield* Layer.build(
    Layer.fresh(OutgoingMails.layer).pipe(
      Layer.provide(Layer.succeed(MailTransport, { from, deliver })),
      Layer.provide(Layer.succeed(MailTemplates, kinds.map((kind) => ({ kind, render })))),
    ),
  )
  return Context.get(context, OutgoingMails)
})

/** One mail of a kind of its own, what attempts at it come to, and the Message-IDs that were sent. */
const added = Effect.fnUntraced(function* (kind: string, render?: MailTemplate["render"]) {
  const mails = yield* Mails
  const [id] = yield* mails.add(mail(kind))
  const sent: Array<string> = []
  const outcomes: Array<MessageOutcome> = []
  const { free, prune, work } = yield* sender([kind], ({ messageId }) =>
    Effect.sync(() => {
      sent.push(messageId)
      return outcomes.shift()!
    }), render)
  /** An attempt, where one is due; gives whether it was. */
  const attempt = Effect.fnUntraced(function* (outcome: MessageOutcome) {
    outcomes.splice(0, 1, outcome)
    const before = sent.length
    yield* work()
    return sent.length > before
  })
  return { id: id!, attempt, free, mails, prune, sent, work }
})

const sentOnce: MessageOutcome = { _tag: "Sent" }

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
      const recipients: Array<string> = []
      const deliver = ({ recipient }: OutgoingMail) =>
        Effect.sync(() => {
          recipients.push(recipient)
          return sentOnce
        })
      const rendered: Array<unknown> = []
      const { work } = yield* sender(["added"], deliver, (asked) =>
        Effect.sync(() => {
          rendered.push(asked)
          return { subject: "About", text: "About", html: "<p>About</p>" }
        }))
      yield* (yield* sender(["undone", "other"], deliver)).work()
      yield* work({ ids: [] })
      assert.deepStrictEqual([recipients, rendered], [[], []])
      yield* work({ ids: [id!] })
      yield* work()
      assert.deepStrictEqual(rendered, [
        { id: id!, subjectId: "d1", recipient: "a@example.com", args: { side: "source", n: null } },
      ])
      assert.deepStrictEqual(recipients, ["a@example.com"])
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
      const [id] = yield* mails.add(odd)
      const rendered: Array<unknown> = []
      const { work } = yield* sender(["odd"], () => Effect.succeed(sentOnce), (asked) =>
        Effect.sync(() => {
          rendered.push(asked)
          return null
        }))
      yield* work()
      const args = { name: "\ufffd ☃ \u2028'\"\\" }
      assert.deepStrictEqual(rendered, [{ id: id!, subjectId: "d", recipient: "a@example.com", args }])
    }))

  it.effect("a refused mail is tried eight times within a day, then given up", () =>
    Effect.gen(function* () {
      const { attempt, id, mails } = yield* added("later")
      const again = attempt({ _tag: "Later", error: "451 busy\0" })
      let tries = 0
      let waited = 0
      for (;;) {
        const before = (yield* row(id)).not_before!.getTime()
        assert.isTrue(yield* again)
        tries++
        const due = (yield* row(id)).not_before
        if (due === null) break
        assert.isFalse(yield* again)
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
      const { attempt, id, mails, sent } = yield* added("unknown")
      assert.isTrue(yield* attempt({ _tag: "Unknown", error: "cut" }))
      assert.deepInclude(yield* row(id), { state: "unknown", doubts: 1 })
      assert.isAtLeast((yield* mails.diagnostics).unknown, 1)
      yield* TestClock.adjust(10 * minute - 1)
      // A refusal before DATA is no repeat: the server was not handed the message.
      const refused = attempt({ _tag: "Later", error: "421" })
      assert.isFalse(yield* refused)
      yield* TestClock.adjust(1)
      assert.isTrue(yield* refused)
      assert.deepInclude(yield* row(id), { state: "unknown", doubts: 1 })
      yield* TestClock.adjust(5 * minute)
      assert.isTrue(yield* attempt({ _tag: "Unknown", error: "cut again" }))
      const messageId = `<${id}@mail.example>`
      assert.deepInclude(yield* row(id), { state: "unknown", doubts: 2, not_before: null, message_id: messageId })
      assert.deepStrictEqual(sent, Array(3).fill(messageId))
    }))

  it.effect("a mail of a process that died is unknown only if its sending had begun", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const over = (id: string) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) =>
          sql`update mails set lease_until = ${new Date(now - 1)} where id = ${id}::uuid`)
      // A process that stands still from a moment on is dead to the others.
      const [rendering, rendered] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const text = { subject: "About", text: "About", html: "<p>About</p>" }
      const { attempt, free, id, sent } = yield* added("killed", () =>
        Deferred.succeed(rendering, undefined).pipe(Effect.andThen(Deferred.await(rendered)), Effect.as(text)))
      const first = yield* Effect.forkChild(attempt(sentOnce))
      yield* Deferred.await(rendering)
      yield* over(id)
      yield* free
      assert.deepInclude(yield* row(id), { state: "pending", doubts: 0, claim: null, last_error: "interrupted" })
      yield* Deferred.succeed(rendered, undefined)
      assert.isFalse(yield* Fiber.join(first))
      assert.deepStrictEqual(sent, [])

      yield* TestClock.adjust(minute)
      const [handed, answered] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const silent = yield* sender(["killed"], () =>
        Deferred.succeed(handed, undefined).pipe(Effect.andThen(Deferred.await(answered)), Effect.as(sentOnce)))
      const second = yield* Effect.forkChild(silent.work())
      yield* Deferred.await(handed)
      yield* over(id)
      yield* free
      assert.deepInclude(yield* row(id), { state: "unknown", doubts: 1, claim: null })
      yield* Deferred.succeed(answered, undefined)
      yield* Fiber.join(second)
      assert.strictEqual((yield* row(id)).state, "unknown")
      // Ten minutes from its beginning, three of which the lease took.
      yield* TestClock.adjust(7 * minute - 2)
      assert.isFalse(yield* attempt(sentOnce))
      yield* TestClock.adjust(1)
      assert.isTrue(yield* attempt(sentOnce))
      const ended = yield* row(id)
      assert.deepInclude(ended, { state: "sent", not_before: null, last_error: null })
      assert.isNotNull(ended.sent_at)
    }))

  it.effect("a mail refused for good or without content ends, and is deleted after 90 days", () =>
    Effect.gen(function* () {
      const refused = yield* added("refused")
      assert.isTrue(yield* refused.attempt({ _tag: "Refused", error: "550 no such user" }))
      assert.deepInclude(yield* row(refused.id), { state: "failed", not_before: null })
      const dropped = yield* added("dropped", () => Effect.succeed(null))
      assert.isFalse(yield* dropped.attempt(sentOnce))
      assert.deepInclude(yield* row(dropped.id), { state: "dropped", not_before: null })
      const { sql } = yield* Database
      const age = (days: number) =>
        sql`update mails set ended_at = ended_at - ${days} * interval '1 day' where id = ${dropped.id}::uuid`
      yield* age(89)
      yield* dropped.prune
      assert.isDefined(yield* row(dropped.id))
      yield* age(2)
      // An hour's prune must keep up with an hour's mails, however many.
      yield* sql`insert into mails (id, kind, subject_id, recipient, args, state, created_at, ended_at)
        select gen_random_uuid(), kind, subject_id, recipient, args, state, created_at, ended_at
        from mails, generate_series(1, 2500) where id = ${dropped.id}::uuid`
      yield* dropped.prune
      assert.isUndefined(yield* row(dropped.id))
      assert.lengthOf(yield* sql`select from mails where kind = 'dropped'`, 0)
    }))
})
