import { assert, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { defaultPreferences, NotificationList, NotificationView } from "../../../../schemas/mail/Notification.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import { client } from "../../../../sdk/client/Client.ts"
import { announce, notice } from "../../../services/notifications/NotificationFixture.ts"
import { Server } from "../../../../src/http/Server.ts"
import { codeOf } from "../../../support/Fixtures.ts"
import { account, signedIn } from "../../../support/TestAccounts.ts"
import { type Answer, call, type Headers, served } from "./NotificationServer.ts"

const faultsOf = ({ body }: Answer) =>
  (body.detail as ReadonlyArray<{ loc: unknown; type: string }>).map(({ loc, type }) => [loc, type])

const newcomer = Effect.gen(function* () {
  const id = yield* account({ plan: "free" })
  return { id, session: (yield* signedIn(id)) as Headers }
})

layer(served, { excludeTestServices: true })("/v1/notifications", (it) => {
  it.effect("lists, marks one, marks all", () =>
    Effect.gen(function* () {
      const { id, session } = yield* newcomer
      const empty = yield* call("GET", "/v1/notifications", session)
      assert.deepStrictEqual([empty.status, empty.body], [200, { items: [], total: 0, unread: 0 }])
      yield* announce(notice(id, { category: "alerts" }), notice(id), notice(id))
      assert.deepStrictEqual(Object.keys((yield* call("GET", "/v1/notifications?unread=true", session)).body), [
        "items",
        "total",
        "unread",
      ])
      const answer = yield* call("GET", "/v1/notifications/?limit=2&unread=yes", session)
      const { items, next_after_id, total, unread } = Schema.decodeUnknownSync(NotificationList)(answer.body)
      assert.deepStrictEqual([items.length, total, unread, next_after_id], [2, 3, 3, items[1]!.id])
      const second = yield* call("GET", `/v1/notifications?after_id=${next_after_id!.replaceAll("-", "")}`, session)
      assert.deepStrictEqual([second.body.items.length, second.body.next_after_id], [1, null])
      const read = yield* call("POST", `/v1/notifications/${items[0]!.id}/read`, session)
      assert.isNotNull(Schema.decodeUnknownSync(NotificationView)(read.body).read_at)
      const again = yield* call("POST", `/v1/notifications/${items[0]!.id}/read/`, session, "{}")
      assert.deepStrictEqual(again.body, read.body)
      const all = yield* call("POST", "/v1/notifications/read-all", session)
      assert.deepStrictEqual([all.status, all.body], [200, { updated: 2, unread: 0 }])
      const none = yield* call("POST", "/v1/notifications/read-all", session)
      assert.deepStrictEqual(none.body, { updated: 0, unread: 0 })
      const after = yield* call("GET", "/v1/notifications?unread=true", session)
      assert.deepStrictEqual(after.body, { items: [], total: 3, unread: 0 })
      const alerts = yield* call("GET", "/v1/notifications?category=alerts", session)
      assert.strictEqual(alerts.body.items.length, 1)
      assert.strictEqual((yield* call("GET", "/v1/notifications?category=nothing", session)).body.items.length, 0)
      const audited = yield* (yield* Database).sql<{ action: string }>`
        select action from audit_records where actor = ${`account:${id}`} order by id`
      assert.deepStrictEqual(audited.map(({ action }) => action), ["notification.read", "notifications.read-all"])
    }))

  it.effect("under a key a mark is answered as at first, though others have come since", () =>
    Effect.gen(function* () {
      const { id, session } = yield* newcomer
      yield* announce(notice(id), notice(id))
      const keyed = { ...session, "idempotency-key": "a" }
      const { items } = (yield* call("GET", "/v1/notifications", session)).body
      const one = `/v1/notifications/${items[0].id}/read`
      for (
        const [path, body] of [[one, undefined], ["/v1/notifications/read-all", { updated: 1, unread: 0 }]] as const
      ) {
        const first = yield* call("POST", path, keyed)
        assert.strictEqual(first.status, 200)
        assert.isNull(first.headers.get("idempotency-replayed"))
        if (body !== undefined) assert.deepStrictEqual(first.body, body)
        yield* announce(notice(id))
        const again = yield* call("POST", path, keyed)
        assert.deepStrictEqual([again.status, again.body], [200, first.body])
        assert.strictEqual(again.headers.get("idempotency-replayed"), "true")
        yield* call("POST", "/v1/notifications/read-all", session)
        yield* announce(notice(id))
      }
      const faulty = yield* call("POST", one, { ...session, "idempotency-key": "two words" })
      assert.deepStrictEqual(faultsOf(faulty), [[["header", "idempotency-key"], "string_pattern_mismatch"]])
      const left = yield* call("GET", "/v1/notifications?unread=true", session)
      assert.strictEqual(left.body.unread, 1)
    }))

  it.effect("the client's iterator goes through all pages, with a limit and without", () =>
    Effect.gen(function* () {
      const { id, session } = yield* newcomer
      yield* announce(...Array.from({ length: 52 }, () => notice(id)))
      const { url } = yield* Server
      const headers = (init?: RequestInit) => ({ ...Object.fromEntries(new Headers(init?.headers)), ...session })
      const api = client({ url, fetch: (input, init) => fetch(input, { ...init, headers: headers(init) }) })
      for (const query of [{}, { limit: 26 }, { limit: 20, unread: true }]) {
        const found = yield* Effect.promise(() => Array.fromAsync(api.items("/v1/notifications", { query })))
        assert.strictEqual(new Set(found.map(({ id }) => id)).size, 52)
        assert.strictEqual(found.length, 52)
      }
    }))

  it.effect("another account's is 404, a request without a credential 401, a limit out of bounds 422", () =>
    Effect.gen(function* () {
      const [mine, other] = [yield* newcomer, yield* newcomer]
      yield* announce(notice(mine.id))
      const { items } = (yield* call("GET", "/v1/notifications", mine.session)).body
      for (const id of [items[0].id, crypto.randomUUID(), "x"]) {
        const refused = yield* call("POST", `/v1/notifications/${id}/read`, other.session)
        assert.deepStrictEqual(codeOf(refused), [404, "not_found"])
      }
      const paths = [
        ["GET", "/v1/notifications?limit=0"],
        ["POST", "/v1/notifications/read-all"],
        ["GET", "/v1/notifications/preferences"],
        ["PUT", "/v1/notifications/preferences"],
        ["POST", "/v1/notifications/x/read"],
      ] as const
      for (const [method, path] of paths) {
        assert.deepStrictEqual(codeOf(yield* call(method, path)), [401, "invalid_credentials"], path)
      }
      const wrong = yield* call("GET", "/v1/notifications?limit=201&unread=perhaps&after_id=1", mine.session)
      assert.deepStrictEqual([wrong.status, faultsOf(wrong)], [422, [
        [["query", "unread"], "bool_parsing"],
        [["query", "limit"], "less_than_equal"],
        [["query", "after_id"], "uuid_parsing"],
      ]])
    }))

  it.effect("preferences are the defaults and the choices; unknown ones are ignored", () =>
    Effect.gen(function* () {
      const { session } = yield* newcomer
      const path = "/v1/notifications/preferences"
      const put = (body?: unknown) => call("PUT", path, session, body === undefined ? undefined : JSON.stringify(body))
      assert.deepStrictEqual((yield* call("GET", path, session)).body, { preferences: defaultPreferences })
      const first = yield* put({
        preferences: { alerts: { slack: true, pager: "loud" }, billing: { web: 7 }, team: {} },
        more: 1,
      })
      const chosen = { ...defaultPreferences, alerts: { web: true, email: true, slack: true } }
      assert.deepStrictEqual([first.status, first.body], [200, { preferences: chosen }])
      yield* Effect.all([
        put({ preferences: { alerts: { email: false } } }),
        put({ preferences: { alerts: { web: false }, team: { web: false } } }),
      ], { concurrency: 2 })
      const merged = {
        ...defaultPreferences,
        alerts: { web: false, email: false, slack: true },
        team: { ...defaultPreferences.team, web: false },
      }
      assert.deepStrictEqual((yield* call("GET", path, session)).body, { preferences: merged })
      for (
        const body of [undefined, {}, [], 5, "x", { preferences: null }, { preferences: [] }, { preferences: "x" }]
      ) {
        const refused = yield* put(body)
        assert.deepStrictEqual(codeOf(refused), [400, "preferences_invalid"], JSON.stringify(body))
      }
      const faults = yield* put({
        preferences: { alerts: { web: "true", email: null }, sends: 1, domains: { slack: 0 } },
      })
      assert.deepStrictEqual([faults.status, faultsOf(faults)], [422, [
        [["body", "preferences", "alerts", "web"], "bool_type"],
        [["body", "preferences", "alerts", "email"], "bool_type"],
        [["body", "preferences", "sends"], "dict_type"],
        [["body", "preferences", "domains", "slack"], "bool_type"],
      ]])
      const broken = yield* call("PUT", path, session, "{")
      assert.deepStrictEqual([broken.status, faultsOf(broken)[0]![1]], [422, "json_invalid"])
      assert.deepStrictEqual((yield* call("GET", path, session)).body, { preferences: merged })
      const polluted = yield* call("PUT", path, session, `{"preferences":{"__proto__":{"web":false},"alerts":{}}}`)
      assert.deepStrictEqual(polluted.body, { preferences: merged })
    }))
})
