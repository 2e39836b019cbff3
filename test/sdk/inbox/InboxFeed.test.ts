/** The state behind `<bailiwick-inbox>`, over the real endpoints, while answers and events overtake each other. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { AccountId } from "../../../schemas/BrandedIds.ts"
import type { NotificationList } from "../../../schemas/mail/Notification.ts"
import { InboxFeed } from "../../../sdk/inbox/InboxFeed.ts"
import { Inbox } from "../../../services/notifications/Inbox.ts"
import { Server } from "../../../src/http/Server.ts"
import { until } from "../../e2e/support/Until.ts"
import { announce, notice } from "../../services/notifications/NotificationFixture.ts"
import { call, follow, type Headers, served } from "../../src/http/handlers/NotificationServer.ts"
import { account, signedIn } from "../../support/TestAccounts.ts"

/** A gate at which answers wait until it is opened. */
const gate = () => {
  let open = () => {}
  const opened = new Promise<void>((resolve) => void (open = resolve))
  return { opened, open: () => open() }
}

/**
 * A feed of a new account; it follows the stream until the scope closes. `waits` gives what an answer to this path
 * waits for.
 */
const following = Effect.fnUntraced(function* (waits: (path: string) => Promise<void> | undefined = () => undefined) {
  const id = yield* account({ plan: "free" })
  const session = (yield* signedIn(id)) as Headers
  const { url } = yield* Server
  const arrived: Array<string> = []
  const feed = new InboxFeed({
    base: url,
    token: () => undefined,
    fetch: async (input, init) => {
      const headers = { ...Object.fromEntries(new Headers(init?.headers)), ...session }
      const answer = await fetch(input, { ...init, headers })
      await waits(String(input))
      return answer
    },
    changed: () => {},
    arrived: ({ title }) => arrived.push(title),
  })
  const begin = Effect.acquireRelease(
    Effect.sync(() => {
      const stream = new AbortController()
      void feed.follow(stream.signal)
      return stream
    }),
    (stream) => Effect.sync(() => stream.abort()),
  )
  const shows = (what: string, good: (feed: InboxFeed) => boolean) =>
    until(what, Effect.sync(() => ({ good: good(feed), unread: feed.unread, items: feed.items })), ({ good }) => good)
  const list = Effect.map(call("GET", "/v1/notifications?limit=200", session), ({ body }) => body as NotificationList)
  return { id, session, feed, begin, shows, arrived, list }
})

const notices = (accountId: AccountId, count: number) =>
  announce(...Array.from({ length: count }, (_, n) => notice(accountId, { title: `Note ${n}` })))

layer(served, { excludeTestServices: true })("the feed of an inbox", (it) => {
  it.effect("takes no older notification in before its page is read", () =>
    Effect.gen(function* () {
      const { arrived, begin, feed, id, list, shows } = yield* following()
      yield* notices(id, 25)
      yield* begin
      yield* shows("a page", ({ items }) => items.length === 20)
      assert.isTrue(feed.more)
      const old = (yield* list).items.at(-1)!
      yield* (yield* Inbox).markRead(id, old.id)
      yield* shows("the count", ({ unread }) => unread === 24)
      assert.strictEqual(feed.items.length, 20)
      yield* announce(notice(id, { title: "New" }))
      yield* shows("the new one", ({ items }) => items[0]!.title === "New")
      assert.deepStrictEqual(arrived, ["New"])
      const first = yield* Effect.promise(() => feed.loadMore())
      assert.strictEqual(feed.items[21]!.id, first)
      assert.deepStrictEqual(feed.items, (yield* list).items)
      assert.isFalse(feed.more)
    }))

  it.effect("drops a page whose place in the list has moved", () =>
    Effect.gen(function* () {
      const answer = gate()
      const { begin, feed, id, list, shows } = yield* following((path) =>
        path.includes("after_id") ? answer.opened : undefined
      )
      const moves = notice(id, { title: "Moves", coalesceKey: "one" })
      yield* notices(id, 5)
      yield* announce(moves)
      yield* notices(id, 19)
      yield* begin
      yield* shows("a page", ({ items }) => items.at(-1)?.title === "Moves" && items.length === 20)
      const asked = feed.loadMore()
      yield* announce(moves)
      yield* shows("it on top", ({ items }) => items[0]!.title === "Moves")
      answer.open()
      assert.isUndefined(yield* Effect.promise(() => asked))
      assert.deepStrictEqual([feed.items.length, feed.more], [20, true])
      yield* Effect.promise(() => feed.loadMore())
      assert.deepStrictEqual(feed.items, (yield* list).items)
    }))

  it.effect("keeps unread what comes while all are marked, also where the stream is faster than the answer", () =>
    Effect.gen(function* () {
      const answer = gate()
      const { begin, feed, id, list, shows } = yield* following((path) =>
        path.endsWith("/read-all") ? answer.opened : undefined
      )
      yield* notices(id, 3)
      yield* begin
      yield* shows("the list", ({ items }) => items.length === 3)
      const asked = feed.markAllRead()
      yield* shows("the stream's word", ({ unread }) => unread === 0)
      yield* announce(notice(id, { title: "New" }))
      yield* shows("the new one", ({ items }) => items.length === 4)
      answer.open()
      yield* Effect.promise(() => asked)
      assert.strictEqual(feed.unread, 1)
      assert.deepStrictEqual(feed.items, (yield* list).items)
    }))

  it.effect("drops a list that a later read has overtaken", () =>
    Effect.gen(function* () {
      const [stream, list] = [gate(), gate()]
      let lists = 0
      const { begin, feed, id, session, shows } = yield* following((path) => {
        if (path.endsWith("/stream")) return stream.opened
        // The stream is late, so the list is read before its first event; then this answer is late.
        if (++lists > 1) return undefined
        stream.open()
        return list.opened
      })
      yield* notices(id, 2)
      yield* begin
      yield* shows("the second list", ({ items }) => items.length === 2)
      yield* announce(notice(id, { title: "New" }))
      yield* shows("the new one", ({ items }) => items.length === 3)
      list.open()
      // What waits for the late answer runs before the next answer's.
      yield* call("GET", "/v1/notifications", session)
      assert.deepStrictEqual([lists, feed.items[0]!.title, feed.items.length], [2, "New", 3])
      assert.deepStrictEqual([feed.total, feed.unread], [3, 3])
    }))

  it.effect("shows the list where no stream begins", () =>
    Effect.gen(function* () {
      const { begin, feed, id, session, shows } = yield* following()
      yield* notices(id, 2)
      // As many as an account may have.
      for (let n = 0; n < 10; n++) yield* follow(session)
      yield* begin
      yield* shows("the list", ({ items }) => items.length === 2)
      assert.deepStrictEqual([feed.offline, feed.refusal], [false, undefined])
    }))
})
