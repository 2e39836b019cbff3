import { assert, layer } from "@effect/vitest"
import { Clock, Deferred, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import type { IncomingMessage, ServerResponse } from "node:http"
import type { AccountId } from "../../../schemas/BrandedIds.ts"
import { Directory } from "../../../services/directory/Directory.ts"
import { Preferences } from "../../../services/notifications/Preferences.ts"
import { slackBody, SlackMessages } from "../../../services/notifications/SlackMessages.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { Outbound } from "../../../services/platform/Outbound.ts"
import { account } from "../../support/DirectoryLines.ts"
import { serve } from "../platform/Outbound/LoopbackServers.ts"
import { announce, fixture, list, newAccount, notice } from "./NotificationFixture.ts"

const publicUrl = new URL("https://mail.example")

const services = SlackMessages.layer({ hosts: ["localhost"], publicUrl, timeoutMillis: 30_000 }).pipe(
  Layer.provideMerge(Outbound.layer({
    allowedCidrs: ["127.0.0.0/8", "::1/128"],
    certificateAuthorities: [],
    timeoutMillis: 30_000,
    ownPorts: [],
  })),
  Layer.provideMerge(fixture),
)

/** A Slack that answers by path: `/services/<account>/<status>`. */
const slack = Effect.gen(function* () {
  const said: Array<{ readonly path: string; readonly text: string }> = []
  const { port } = yield* serve((request: IncomingMessage, response: ServerResponse) => {
    let body = ""
    request.on("data", (chunk) => body += chunk)
    request.on("end", () => {
      said.push({ path: request.url!, text: JSON.parse(body).text })
      const status = Number(request.url!.split("/").at(-1))
      if (status === 0) request.socket.destroy()
      else response.writeHead(status).end("ok")
    })
  })
  return { said, url: (path: string) => `http://localhost:${port}/services/${path}` }
})

const listener = Effect.fnUntraced(function* (url: string) {
  const id = yield* newAccount({ slack_webhook_url: url })
  yield* (yield* Preferences).set(id, { preferences: { alerts: { slack: true } } })
  return id
})

const stateOf = Effect.fnUntraced(function* (accountId: AccountId) {
  const { sql } = yield* Database
  const rows = yield* sql<{ state: string; attempts: number; last_error: string | null }>`
    select state, attempts, last_error from slack_messages where account_id = ${accountId}::uuid order by id`
  return rows.map(({ attempts, last_error, state }) => [state, attempts, last_error])
})

const alert = (accountId: AccountId, fields = {}) => notice(accountId, { category: "alerts", ...fields })

layer(services, { excludeTestServices: true })("the channel slack", (it) => {
  it.effect("messages go to each account's own Slack webhook, and a broken one delays no other", () =>
    Effect.gen(function* () {
      const { said, url } = yield* slack
      const { work } = yield* SlackMessages
      const { sql } = yield* Database
      const good = yield* listener(url("good/200"))
      const broken = yield* listener(url("broken/500"))
      const cut = yield* listener(url("cut/0"))
      const gone = yield* listener(url("gone/404"))
      const foreign = yield* listener("https://evil.example/services/x")
      const nowhere = yield* listener("http://localhost:1/services/x")
      const all = [good, broken, cut, gone, foreign, nowhere]
      yield* announce(...all.map((id) => alert(id, { title: "<!channel> & more" })))
      yield* Effect.repeat(work(), { until: (more) => !more })
      assert.deepStrictEqual(yield* stateOf(good), [["sent", 1, null]])
      assert.deepStrictEqual(yield* stateOf(broken), [["pending", 1, "status 500"]])
      assert.deepStrictEqual(yield* stateOf(cut), [["pending", 1, "reset"]])
      assert.deepStrictEqual(yield* stateOf(gone), [["failed", 1, "status 404"]])
      assert.deepStrictEqual(yield* stateOf(foreign), [["failed", 1, "not one of SLACK_HOSTS"]])
      assert.deepStrictEqual((yield* stateOf(nowhere)).map(([state, n]) => [state, n]), [["pending", 1]])
      for (const id of all) {
        assert.strictEqual((yield* list(id)).total, 1)
        const mails = yield* sql`select kind from mails where recipient = ${`${id}@example.com`}`
        assert.strictEqual(mails.length, 1)
      }
      const [posted] = said.filter(({ path }) => path === "/services/good/200")
      assert.strictEqual(
        posted!.text,
        "*&lt;!channel&gt; &amp; more*\nAnd this is what.\n<https://mail.example/somewhere>",
      )
      assert.deepStrictEqual(said.map(({ path }) => path).sort(), [
        "/services/broken/500",
        "/services/cut/0",
        "/services/gone/404",
        "/services/good/200",
      ])
    }).pipe(Effect.scoped))

  it.effect("a message goes to the webhook that the account has when it is sent", () =>
    Effect.gen(function* () {
      const { said, url } = yield* slack
      const moved = yield* listener(url("old/200"))
      const removed = yield* listener(url("removed/200"))
      yield* announce(alert(moved), alert(removed))
      yield* (yield* Directory).apply([
        account(moved, 2, { slack_webhook_url: url("new/200") }),
        account(removed, 2, { slack_webhook_url: null }),
      ])
      yield* Effect.repeat((yield* SlackMessages).work(), { until: (more) => !more })
      assert.deepStrictEqual(said.map(({ path }) => path), ["/services/new/200"])
      assert.deepStrictEqual(yield* stateOf(removed), [["failed", 1, "the account has no Slack webhook"]])
    }).pipe(Effect.scoped))

  it("text that would be a mention or a link is escaped", () => {
    const body = slackBody({ title: "a\u202e<b>&\u200b", body: "<https://x|y>", href: "/a?b=1&c=2" }, publicUrl)
    assert.strictEqual(
      JSON.parse(body).text,
      "*a&lt;b&gt;&amp;*\n&lt;https://x|y&gt;\n<https://mail.example/a?b=1&amp;c=2>",
    )
  })
})

layer(services)("the channel slack, in time", (it) => {
  it.effect("a message is tried six times, later each time, then given up and deleted after 30 days", () =>
    Effect.gen(function* () {
      const me = yield* listener("http://localhost:1/services/x")
      const { work } = yield* SlackMessages
      yield* announce(alert(me))
      const attempts: Array<unknown> = []
      for (const seconds of [0, 9, 1, 39, 1, 159, 1, 639, 1, 2_559, 1, 11_000]) {
        yield* TestClock.adjust(seconds * 1_000)
        yield* work()
        attempts.push((yield* stateOf(me))[0]!.slice(0, 2).join(" "))
      }
      assert.deepStrictEqual(attempts, [
        ...["pending 1", "pending 1", "pending 2", "pending 2", "pending 3", "pending 3", "pending 4", "pending 4"],
        ...["pending 5", "pending 5", "failed 6", "failed 6"],
      ])
      const { sql } = yield* Database
      const { prune } = yield* SlackMessages
      yield* sql`insert into slack_messages (id, account_id, severity, title, body, href, state, created_at, ended_at, not_before)
        select gen_random_uuid(), account_id, severity, title, body, href, state, created_at, ended_at, not_before
        from slack_messages, generate_series(1, 1200) where account_id = ${me}::uuid`
      const age = (days: number) =>
        sql`update slack_messages set ended_at = ended_at - ${days} * interval '1 day' where account_id = ${me}::uuid`
      yield* age(29)
      yield* prune
      assert.lengthOf(yield* stateOf(me), 1_201)
      yield* age(2)
      yield* prune
      assert.deepStrictEqual(yield* stateOf(me), [])
    }))

  it.effect("a message of a process that died is due again, later each time, and given up after 16 of them", () =>
    Effect.gen(function* () {
      const me = yield* listener("http://localhost:1/services/x")
      const { sql } = yield* Database
      const { free } = yield* SlackMessages
      yield* announce(alert(me))
      const dies = Effect.fnUntraced(function* (attempts: number) {
        const now = new Date(yield* Clock.currentTimeMillis)
        yield* sql`update slack_messages set claim = 1, lease_until = ${now}, attempts = ${attempts}
          where account_id = ${me}::uuid`
        yield* TestClock.adjust(1)
        yield* free
        const [row] = yield* sql<{ not_before: Date }>`
          select not_before from slack_messages where account_id = ${me}::uuid`
        return row!.not_before.getTime() - now.getTime()
      })
      assert.approximately(yield* dies(1), 525, 30)
      assert.approximately(yield* dies(15), 63_000, 3_100)
      assert.deepStrictEqual(yield* stateOf(me), [["pending", 15, "interrupted"]])
      yield* dies(16)
      assert.deepStrictEqual(yield* stateOf(me), [["failed", 16, "interrupted"]])
    }))

  it.effect("a stop waits 4 s for an answer; what has none by then is due at once, as if it had not been tried", () =>
    Effect.gen(function* () {
      const asked = yield* Deferred.make<void>()
      const { port } = yield* serve(() => Deferred.doneUnsafe(asked, Effect.void))
      const me = yield* listener(`http://localhost:${port}/services/x`)
      const { stop, work } = yield* SlackMessages
      yield* announce(alert(me))
      const working = yield* Effect.forkChild(work())
      yield* Deferred.await(asked)
      yield* stop
      const stopped = yield* Effect.forkChild(Fiber.interrupt(working), { startImmediately: true })
      yield* TestClock.adjust(3_999)
      assert.isUndefined(stopped.pollUnsafe())
      yield* TestClock.adjust(1)
      yield* Fiber.join(stopped)
      assert.deepStrictEqual(yield* stateOf(me), [["pending", 0, null]])
      const { sql } = yield* Database
      assert.lengthOf(yield* sql`select from slack_messages where account_id = ${me}::uuid and claim is null`, 1)
    }))
})
