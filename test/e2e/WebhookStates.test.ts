/** Paused, resumed, moved, deleted and rotated webhooks, over HTTP. */
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer, Redacted } from "effect"
import { Database } from "../../services/platform/database/Database.ts"
import { mailEvent } from "./support/EventFeed.ts"
import { receiver } from "./support/Receiver.ts"
import { until } from "./support/Until.ts"
import { deliveries, hook, totals } from "./support/ProgramWebhooks.ts"
import { fixture, type ProgramFixture } from "./support/ProgramFixture.ts"

class Around extends Context.Service<Around, ProgramFixture>()("bailiwick/test/e2e/WebhookStates/Around") {
  static readonly layer = Layer.effect(
    Around,
    fixture({ WEBHOOKS_RETRY_DELAYS: Array(8).fill("1 second").join(",") }),
  )
}

const event = "email.delivered"

layer(Around.layer, { excludeTestServices: true, timeout: "2 minutes" })("a webhook", (it) => {
  it.effect("that is paused gets nothing new, keeps its scheduled deliveries, and goes on when resumed", () =>
    Effect.gen(function* () {
      const { account, feed, tls } = yield* Around
      const { api, id } = yield* account()
      let willing = false
      const target = yield* receiver(tls, ({ path, attempt }) => {
        if (path === "/other") return attempt === 1 ? 500 : 200
        return willing ? 200 : 500
      })
      const own = yield* hook(api, target, "/own", [event])
      const other = yield* hook(api, target, "/other", [event])
      yield* feed.events([mailEvent(id, "before")])
      const [scheduled] = yield* until("a retry", deliveries(api, own.id, "retrying"), (found) => found.length === 1)
      assert.isAbove(Date.parse(scheduled.next_retry_at), Date.parse(scheduled.created_at))

      const paused = yield* api.patch(`/v1/webhooks/${own.id}`, { is_active: false })
      assert.strictEqual(paused.status, 200)
      assert.deepInclude(paused.json, { id: own.id, is_active: false })
      assert.notProperty(paused.json, "secret")
      // An attempt that had begun has ended, too.
      const [{ attempt: heard }] = yield* until(
        "no attempt under way",
        deliveries(api, own.id),
        ([one]) => one.status === "retrying" && one.attempt === target.at("/own").length,
      )
      const ids = (query: string) =>
        Effect.map(api.get(`/v1/webhooks/${query}`), ({ json }) => json.map((w: { id: string }) => w.id))
      assert.deepStrictEqual(yield* ids(""), [other.id])
      assert.deepStrictEqual(yield* ids("?include_paused=true"), [other.id, own.id])
      const tested = yield* api.post(`/v1/webhooks/${own.id}/test`)
      assert.deepStrictEqual([tested.status, tested.json], [200, { queued: false, url: target.url("/own") }])

      // The other webhook's retry is due later than the paused one's was.
      yield* feed.events([mailEvent(id, "while")])
      yield* until("the other's retries", totals(api, other.id), ({ delivered }) => delivered === 2)
      assert.strictEqual(target.at("/own").length, heard)
      assert.deepInclude(yield* totals(api, own.id), { all: 1, retrying: 1 })

      willing = true
      const resumed = yield* api.patch(`/v1/webhooks/${own.id}`, { is_active: true })
      assert.strictEqual(resumed.json.is_active, true)
      yield* until("what was scheduled", totals(api, own.id), ({ delivered }) => delivered === 1)
      assert.deepInclude(target.at("/own").at(-1), { id: scheduled.id, attempt: heard + 1, fault: null })
      yield* feed.events([mailEvent(id, "after")])
      yield* until("what is new", totals(api, own.id), ({ delivered }) => delivered === 2)
      assert.deepStrictEqual(
        target.at("/own").map(({ body }) => JSON.parse(body).email_id),
        [...Array(heard + 1).fill("em_before"), "em_after"],
      )

      // What came while it was paused is sent by request, once.
      const span = { since: paused.json.created_at, status: "missed" }
      const replay = `/v1/webhooks/${own.id}/replay`
      const counted = yield* api.get(`${replay}?${new URLSearchParams(span)}`)
      assert.deepStrictEqual([counted.status, counted.json], [200, { deliveries: 1 }], counted.text)
      const replayed = yield* api.post(replay, span)
      assert.deepStrictEqual([replayed.status, replayed.json.replayed], [202, 1], replayed.text)
      yield* until("what was missed", totals(api, own.id), ({ delivered }) => delivered === 3)
      assert.strictEqual(JSON.parse(target.at("/own").at(-1)!.body).email_id, "em_while")
      assert.strictEqual((yield* api.post(replay, span)).json.replayed, 0)
    }))

  it.effect("that moves gets its later attempts at the new address", () =>
    Effect.gen(function* () {
      const { account, feed, tls } = yield* Around
      const { api, id } = yield* account()
      const target = yield* receiver(tls, ({ path }) => path === "/old" ? 404 : 200)
      const moving = yield* hook(api, target, "/old", [event])
      target.trust("/new", moving.secret)
      yield* feed.events([mailEvent(id, "1")])
      yield* until("a failure", totals(api, moving.id), ({ retrying }) => retrying === 1)
      const moved = yield* api.patch(`/v1/webhooks/${moving.id}`, { url: target.url("/new") })
      assert.strictEqual(moved.json.url, target.url("/new"))
      yield* until("the delivery", totals(api, moving.id), ({ delivered }) => delivered === 1)
      const [arrived] = target.at("/new")
      assert.deepInclude(arrived, { id: target.at("/old")[0]!.id, body: target.at("/old")[0]!.body, fault: null })
      const record = (yield* api.get(`/v1/webhook-deliveries/${arrived!.id}`)).json
      assert.strictEqual(record.endpoint_url, target.url("/new"))
    }))

  it.effect("that is deleted cancels waiting deliveries; its list is gone, its deliveries stay readable", () =>
    Effect.gen(function* () {
      const { account, feed, tls } = yield* Around
      const { api, id } = yield* account()
      const stranger = yield* account()
      const target = yield* receiver(tls, () => 500)
      const { id: hookId, path } = yield* hook(api, target, "/deleted", [event])
      yield* feed.events([mailEvent(id, "1")])
      const [waiting] = yield* until("a retry", deliveries(api, hookId, "retrying"), (found) => found.length === 1)
      assert.strictEqual((yield* stranger.api.delete(`/v1/webhooks/${hookId}`)).status, 404)
      const gone = yield* api.delete(`/v1/webhooks/${hookId}`)
      assert.deepStrictEqual([gone.status, gone.text], [204, ""])
      const read = api.get(`/v1/webhook-deliveries/${waiting.id}`)
      const { json } = yield* until("the cancellation", read, ({ json }) => json.status === "cancelled")
      assert.deepInclude(json, { webhook_id: hookId, next_retry_at: null })
      assert.strictEqual((yield* api.get(`/v1/webhooks/${hookId}/deliveries`)).status, 404)
      assert.strictEqual((yield* api.patch(`/v1/webhooks/${hookId}`, { is_active: true })).status, 404)
      assert.strictEqual((yield* api.delete(`/v1/webhooks/${hookId}`)).status, 404)
      assert.strictEqual((yield* api.post(`/v1/webhook-deliveries/${waiting.id}/replay`)).status, 409)
      assert.strictEqual((yield* stranger.api.get(`/v1/webhook-deliveries/${waiting.id}`)).status, 404)
      assert.strictEqual(target.at(path).length, json.attempts.length)
    }))

  it.effect("whose secret is rotated signs with both secrets while they overlap, then with the new one alone", () =>
    Effect.gen(function* () {
      const { account, feed, tls } = yield* Around
      const { api, id } = yield* account()
      const target = yield* receiver(tls)
      const { id: hookId, path, secret } = yield* hook(api, target, "/rotated", [event])
      const rotate = (body?: unknown) => api.post(`/v1/webhooks/${hookId}/rotate-secret`, body)
      const arrived = Effect.fnUntraced(function* (n: number) {
        yield* feed.events([mailEvent(id, String(n))])
        yield* until("a delivery", totals(api, hookId), ({ delivered }) => delivered === n)
        const last = target.at(path).at(-1)!
        assert.isNull(last.fault)
        return String(last.headers["webhook-signature"]).split(" ").length
      })

      assert.strictEqual(yield* arrived(1), 1)
      const second = yield* rotate({ overlap_seconds: 3600 })
      assert.strictEqual(second.status, 200)
      assert.match(second.json.secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
      assert.notStrictEqual(second.json.secret, secret)
      target.trust(path, second.json.secret, secret)
      assert.strictEqual(yield* arrived(2), 2)
      const third = yield* rotate({ overlap_seconds: 0 })
      target.trust(path, third.json.secret)
      assert.strictEqual(yield* arrived(3), 1)
      // The default overlap is a day.
      const fourth = yield* rotate()
      assert.strictEqual(fourth.status, 200)
      target.trust(path, fourth.json.secret, third.json.secret)
      assert.strictEqual(yield* arrived(4), 2)
      assert.strictEqual((yield* rotate({ overlap_seconds: 604_801 })).status, 422)
    }))

  it.effect("whose secret is rotated during a commit of seconds is rotated once", () =>
    Effect.gen(function* () {
      const { account, env, feed, tls } = yield* Around
      const { api, id } = yield* account()
      const target = yield* receiver(tls)
      const { id: hookId, path, secret } = yield* hook(api, target, "/slowly", [event])
      const url = Redacted.make(env["DATABASE_OWNER_URL"]!)
      const rotated = yield* Effect.gen(function* () {
        const { owner } = yield* Database
        yield* owner`create function late() returns trigger language plpgsql as $$
          begin perform pg_sleep(3); return null; end $$`
        yield* owner.unsafe(
          `create constraint trigger late after update on webhooks deferrable initially deferred
          for each row when (new.id = '${hookId}') execute function late()`,
        )
        const rotated = yield* api.post(`/v1/webhooks/${hookId}/rotate-secret`)
        yield* owner`drop function late cascade`
        return rotated
      }).pipe(Effect.provide(Database.layer({ url, ownerUrl: url, maxConnections: 1 })))
      assert.strictEqual(rotated.status, 200, rotated.text)
      target.trust(path, rotated.json.secret, secret)
      yield* feed.events([mailEvent(id, "1")])
      yield* until("a delivery", totals(api, hookId), ({ delivered, retrying }) => delivered + retrying === 1)
      assert.deepStrictEqual(target.at(path).map(({ fault }) => fault), [null])
    }))
})
