import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { randomUUID } from "node:crypto"
import type { AccountId } from "../../../schemas/BrandedIds.ts"
import type { NotificationList } from "../../../schemas/mail/Notification.ts"
import { Inbox, type ListRequest } from "../../../services/notifications/Inbox.ts"
import { Preferences } from "../../../services/notifications/Preferences.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { rowsRead } from "../../support/RowsRead.ts"
import { announce, fixture, list, newAccount, notice, session } from "./NotificationFixture.ts"

/** The ids of each page, from the first to the one that says that none follows. */
const walk = Effect.fnUntraced(function* (accountId: AccountId, request: Partial<ListRequest>) {
  const pages: Array<ReadonlyArray<string>> = []
  let after: string | null | undefined
  do {
    const page: NotificationList = yield* list(accountId, { ...request, ...(after && { after_id: after }) })
    pages.push(page.items.map(({ id }) => id))
    after = page.next_after_id
    assert.notStrictEqual(after, undefined)
  } while (after)
  return pages
})

const idsOf = (accountId: AccountId, request: Partial<ListRequest> = {}) =>
  Effect.map(list(accountId, { limit: 200, ...request }), ({ items }) => items.map(({ id }) => id))

layer(fixture)("the pages of an inbox", (it) => {
  it.effect("are the list, also where several have one time, and where a filter leaves some out", () =>
    Effect.gen(function* () {
      const me = yield* newAccount()
      for (const category of ["alerts", "team", "sends"] as const) {
        yield* announce(...Array.from({ length: 4 }, () => notice(me, { category })), notice(me, { category: "team" }))
        yield* TestClock.adjust("1 second")
      }
      const inbox = yield* Inbox
      for (const id of (yield* idsOf(me)).filter((_, n) => n % 4 === 0)) yield* inbox.markRead(me, id)
      for (const limit of [1, 4, 5, 14, 15, 200]) {
        for (const filter of [{}, { unread: true }, { category: "team" }, { category: "team", unread: true }]) {
          const all = yield* idsOf(me, filter)
          const pages = yield* walk(me, { ...filter, limit })
          assert.deepStrictEqual(pages.flat(), all)
          assert.strictEqual(pages.length, Math.ceil(all.length / limit))
        }
      }
      assert.deepStrictEqual(yield* walk(me, { category: "nothing", limit: 5 }), [[]])
    }))

  it.effect("go on after one that was read, and say what follows only where a page is asked for", () =>
    Effect.gen(function* () {
      const me = yield* newAccount()
      yield* announce(...Array.from({ length: 55 }, () => notice(me)))
      const { next_after_id } = yield* list(me, { limit: 5, unread: true })
      yield* (yield* Inbox).readAll(me)
      yield* announce(notice(me))
      const all = yield* idsOf(me)
      assert.strictEqual(next_after_id, all[5])
      assert.deepStrictEqual(yield* list(me, { limit: 5, unread: true, after_id: next_after_id! }), {
        items: [],
        total: 56,
        unread: 1,
        next_after_id: null,
      })
      const rest = yield* list(me, { after_id: next_after_id! })
      assert.deepStrictEqual(rest.items.map(({ id }) => id), all.slice(6))
      assert.strictEqual(rest.next_after_id, null)
      const plain = yield* list(me)
      assert.deepStrictEqual([Object.keys(plain), plain.items.length], [["items", "total", "unread"], 50])
    }))

  it.effect("begin again after one that moved to the top, and end after one that the list does not have", () =>
    Effect.gen(function* () {
      const [me, other] = [yield* newAccount(), yield* newAccount()]
      const repeated = notice(me, { coalesceKey: "one" })
      for (const each of [notice(me), repeated, notice(me), notice(other)]) {
        yield* TestClock.adjust("1 second")
        yield* announce(each)
      }
      const [newest, moves, oldest] = yield* idsOf(me)
      assert.deepStrictEqual((yield* list(me, { limit: 2 })).next_after_id, moves)
      yield* TestClock.adjust("1 second")
      yield* announce(repeated)
      assert.deepStrictEqual(yield* idsOf(me, { after_id: moves! }), [newest, oldest])
      yield* (yield* Preferences).set(me, { preferences: { sends: { web: false, email: true } } })
      yield* announce(notice(me, { category: "sends", coalesceKey: "hidden" }))
      const [hidden] = yield* (yield* Database).sql<{ id: string }>`
        select id::text from notifications where account_id = ${me}::uuid and not shown`
      const [foreign] = yield* idsOf(other)
      for (const after_id of [hidden!.id, foreign!, randomUUID()]) {
        assert.deepStrictEqual(yield* list(me, { after_id }), { items: [], total: 3, unread: 3, next_after_id: null })
      }
    }))

  it.effect("cost the same at the end of a long list", () =>
    Effect.gen(function* () {
      const me = yield* newAccount()
      const { owner, reads } = yield* Database
      yield* owner`
        insert into notifications (id, account_id, shown, version, category, severity, title, body, href, count, created_at)
        select gen_random_uuid(), case when n % 10 = 0 then ${me}::uuid else md5((n % 500)::text)::uuid end, true, n, 'team', 'info',
          't', 'b', '/', 1, timestamptz '2026-01-01' + n / 4 * interval '1 second'
        from generate_series(1, 20000) n`
      yield* owner`vacuum analyze notifications, accounts`
      const [deep] = yield* owner<{ id: string }>`
        select id::text from notifications where account_id = ${me}::uuid order by created_at, id offset 30 limit 1`
      const inbox = yield* Inbox
      for (const request of [{ unread: false }, { unread: true }]) {
        const read = inbox.list(session(me), { ...request, limit: 20, after_id: deep!.id })
        const [rows, body] = yield* rowsRead(reads, read)
        assert.strictEqual(JSON.parse(body).items.length, 20)
        assert.isAtMost(rows.get("notifications")!, 22)
      }
    }))
})
