import { assert, layer } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { TestClock } from "effect/testing"
import { type AccountId, NotificationId } from "../../../schemas/BrandedIds.ts"
import { Inbox } from "../../../services/notifications/Inbox.ts"
import { Preferences } from "../../../services/notifications/Preferences.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { announce, counted, fixture, list, newAccount, notice } from "./NotificationFixture.ts"

const mailsTo = Effect.fnUntraced(function* (accountId: AccountId) {
  const { sql } = yield* Database
  return yield* sql<{ kind: string; args: Record<string, string> }>`
    select kind, args from mails where recipient = ${`${accountId}@example.com`} order by created_at, id`
})

const slackOf = Effect.fnUntraced(function* (accountId: AccountId) {
  const { sql } = yield* Database
  return yield* sql<{ title: string }>`select title from slack_messages where account_id = ${accountId}::uuid`
})

const saidOnTheBus = Effect.fnUntraced(function* (accountId: AccountId) {
  const { sql } = yield* Database
  return yield* sql<{ subject: string; payload: string }>`
    select subject, payload from outbox where subject like ${`notifications.v1.${accountId}.%`} order by id`
})

layer(fixture)("announce", (it) => {
  it.effect("the preferences' channels are stored, mailed and published in the caller's transaction", () =>
    Effect.gen(function* () {
      const me = yield* newAccount()
      yield* announce(notice(me, { category: "alerts", title: "Watch <out>", body: "secret body" }), notice(me))
      const { items, total, unread } = yield* list(me)
      assert.deepStrictEqual([total, unread, items.length], [2, 2, 2])
      assert.deepStrictEqual(items.map(({ title }) => title).sort(), ["Something happened", "Watch <out>"])
      assert.deepStrictEqual((yield* mailsTo(me)).map(({ args, kind }) => [kind, args["title"]]), [
        ["notification", "Watch <out>"],
      ])
      const said = yield* saidOnTheBus(me)
      assert.deepStrictEqual(said.map(({ subject }) => subject.split(".").at(-1)), ["alerts", "team"])
      for (const { payload } of said) assert.isFalse(/secret body|And this|example\.com/.test(payload))
      const undone = yield* Effect.exit(
        (yield* Database).sql.withTransaction(Effect.andThen(announce(notice(me)), Effect.fail("undone"))),
      )
      assert.strictEqual(undone._tag, "Failure")
      assert.strictEqual((yield* list(me)).total, 2)
    }))

  it.effect("a preference switches its own channel only", () =>
    Effect.gen(function* () {
      const me = yield* newAccount({ slack_webhook_url: "https://hooks.slack.com/services/x" })
      const preferences = yield* Preferences
      for (const web of [true, false]) {
        for (const email of [true, false]) {
          for (const slack of [true, false]) {
            const before = [(yield* list(me)).total, (yield* mailsTo(me)).length, (yield* slackOf(me)).length]
            yield* preferences.set(me, { preferences: { sends: { web, email, slack } } })
            yield* announce(notice(me, { category: "sends" }))
            const after = [(yield* list(me)).total, (yield* mailsTo(me)).length, (yield* slackOf(me)).length]
            assert.deepStrictEqual(after.map((n, i) => n - before[i]!), [web, email, slack].map(Number))
          }
        }
      }
      assert.deepStrictEqual(yield* counted(me), { total: 4, unread: 4 })
    }))

  it.effect("a caller's own mail replaces the channel's; a disabled account gets entries without mail", () =>
    Effect.gen(function* () {
      const me = yield* newAccount()
      yield* announce(notice(me, { category: "domains", without: ["email"] }))
      assert.strictEqual((yield* mailsTo(me)).length, 0)
      const gone = yield* newAccount({ status: "disabled" })
      yield* announce(notice(gone, { category: "alerts" }))
      assert.deepStrictEqual([(yield* mailsTo(gone)).length, (yield* counted(gone)).total], [0, 1])
    }))

  it.effect("announcements under one key within an hour are one, counted, mailed once, unread again", () =>
    Effect.gen(function* () {
      const me = yield* newAccount()
      yield* TestClock.adjust(3_600_000 - (yield* Clock.currentTimeMillis) % 3_600_000)
      const said = (body: string) => notice(me, { category: "alerts", body, coalesceKey: "dead-letter.w1" })
      yield* announce(said("a"), said("b"), notice(me, { category: "alerts", coalesceKey: "dead-letter.w2" }))
      yield* TestClock.adjust("59 minutes")
      const first = (yield* list(me)).items.find(({ body }) => body.startsWith("b"))!
      assert.deepStrictEqual([first.count, first.body], [2, "b (2 times within the hour)"])
      yield* (yield* Inbox).markRead(me, first.id)
      assert.deepStrictEqual([(yield* list(me)).total, (yield* list(me)).unread], [2, 1])
      yield* announce(said("c"))
      const again = (yield* list(me)).items.find(({ id }) => id === first.id)!
      assert.deepStrictEqual([again.count, again.body, again.read_at], [3, "c (3 times within the hour)", null])
      assert.deepStrictEqual(yield* counted(me), { total: 2, unread: 2 })
      assert.deepStrictEqual([(yield* list(me)).total, (yield* list(me)).unread], [2, 2])
      assert.strictEqual((yield* mailsTo(me)).length, 2)
      yield* TestClock.adjust("1 minute")
      yield* announce(said("d"))
      assert.strictEqual((yield* list(me)).total, 3)
      assert.strictEqual((yield* mailsTo(me)).length, 3)
    }))

  it.effect("announcements that are not shown coalesce as well", () =>
    Effect.gen(function* () {
      const me = yield* newAccount()
      yield* (yield* Preferences).set(me, { preferences: { alerts: { web: false } } })
      const said = notice(me, { category: "alerts", coalesceKey: "k" })
      yield* announce(said)
      yield* announce(said)
      assert.strictEqual((yield* mailsTo(me)).length, 1)
      yield* (yield* Preferences).set(me, { preferences: { alerts: { web: true } } })
      yield* announce(said)
      assert.deepStrictEqual([(yield* list(me)).total, (yield* counted(me)).total], [0, 0])
    }))

  it.effect("calls with several accounts in opposite orders do not deadlock", () =>
    Effect.gen(function* () {
      const [a, b] = [yield* newAccount(), yield* newAccount()]
      const both = (i: number) => i % 2 === 0 ? [notice(a), notice(b)] : [notice(b), notice(a)]
      yield* Effect.forEach(Array.from({ length: 40 }, (_, i) => i), (i) => announce(...both(i)), { concurrency: 8 })
      for (const id of [a, b]) {
        const { total, unread } = yield* list(id)
        assert.deepStrictEqual([total, unread], [40, 40])
      }
      const { sql } = yield* Database
      const [row] = yield* sql<{ n: number }>`
        select count(distinct version)::int as n from notifications where account_id = ${a}::uuid`
      assert.strictEqual(row!.n, 40)
    }))
})

layer(fixture)("an inbox", (it) => {
  it.effect("notifications are listed newest first, filtered, with counts that ignore limit and filters", () =>
    Effect.gen(function* () {
      const me = yield* newAccount()
      for (const category of ["alerts", "team", "sends", "team"] as const) {
        yield* TestClock.adjust("1 second")
        yield* announce(notice(me, { category, title: `${category} ${yield* Clock.currentTimeMillis}` }))
      }
      const all = yield* list(me)
      const times = all.items.map(({ created_at }) => created_at)
      assert.deepStrictEqual(times, [...times].sort().reverse())
      yield* (yield* Inbox).markRead(me, all.items[0]!.id)
      const categories = Effect.fnUntraced(function* (request: Parameters<typeof list>[1]) {
        const { items, total, unread } = yield* list(me, request)
        assert.deepStrictEqual([total, unread], [4, 3])
        return items.map(({ category }) => category)
      })
      assert.deepStrictEqual(yield* categories({ limit: 2 }), ["team", "sends"])
      assert.deepStrictEqual(yield* categories({ unread: true }), ["sends", "team", "alerts"])
      assert.deepStrictEqual(yield* categories({ category: "team" }), ["team", "team"])
      assert.deepStrictEqual(yield* categories({ category: "team", unread: true }), ["team"])
      assert.deepStrictEqual(yield* categories({ category: "nothing" }), [])
    }))

  it.effect("marking one is idempotent, and another account's is not found", () =>
    Effect.gen(function* () {
      const [me, other] = [yield* newAccount(), yield* newAccount()]
      const inbox = yield* Inbox
      yield* announce(notice(me))
      const { id } = (yield* list(me)).items[0]!
      const first = yield* inbox.markRead(me, id)
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* inbox.markRead(me, NotificationId.make(id.toUpperCase())), first)
      assert.isString(JSON.parse(first).read_at)
      assert.strictEqual((yield* list(me)).unread, 0)
      for (const wrong of [id, crypto.randomUUID(), "nothing"]) {
        const refused = yield* Effect.flip(inbox.markRead(other, NotificationId.make(wrong)))
        assert.strictEqual(refused.code, "not_found")
      }
    }))

  it.effect("a notification that arrives during read-all and is not counted stays unread", () =>
    Effect.gen(function* () {
      const me = yield* newAccount()
      const inbox = yield* Inbox
      let marked = 0
      const arrivals = Effect.forEach(Array.from({ length: 60 }), () => announce(notice(me)), { concurrency: 3 })
      const readers = Effect.gen(function* () {
        for (let i = 0; i < 10; i++) {
          const updated = yield* inbox.readAll(me)
          marked += updated
        }
      })
      yield* Effect.all([arrivals, readers, readers], { concurrency: "unbounded" })
      const { total, unread } = yield* list(me)
      assert.deepStrictEqual({ total, unread }, yield* counted(me))
      assert.strictEqual(unread, 60 - marked)
      assert.strictEqual(yield* inbox.readAll(me), unread)
      assert.deepStrictEqual((yield* list(me)).unread, 0)
      assert.strictEqual(yield* inbox.readAll(me), 0)
    }))
})
