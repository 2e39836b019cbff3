/** What takes time in a live stream, on a virtual clock; how it looks on a socket stands in test/src/http. */
import { assert, describe, it, layer } from "@effect/vitest"
import { Clock, Effect, Exit, Fiber, Layer, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { KeyUses } from "../../../services/accounts/KeyUses.ts"
import { ApiKeys } from "../../../services/accounts/ApiKeys.ts"
import { Principals, type Sent } from "../../../services/accounts/Principals.ts"
import { Live } from "../../../services/notifications/Live.ts"
import { heartbeat } from "../../../services/notifications/Live/Events.ts"
import { Outlet } from "../../../services/notifications/Live/Outlet.ts"
import { Database } from "../../../services/platform/Database.ts"
import { account, ground, sessions, signedIn } from "../../support/TestAccounts.ts"
import { announce, notice } from "./NotificationWorld.ts"

const services = Layer.mergeAll(Live.layer, ApiKeys.layer).pipe(
  Layer.provideMerge(Principals.layer),
  Layer.provide(KeyUses.layer),
  Layer.provideMerge(sessions),
  Layer.provideMerge(ground),
)

/** Lets the loops turn: what they ask of the database takes real time, what they wait for virtual. */
const turns = (count: number) =>
  Effect.repeat(
    Effect.andThen(
      TestClock.adjust("1 second"),
      Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 5))),
    ),
    { times: count - 1 },
  )

const decoder = new TextDecoder()

/** A stream in a scope of its own, and what it said so far. */
const opened = Effect.fnUntraced(function* (accountId: string, sent: Sent, lastEventId?: string) {
  const scope = yield* Scope.make()
  const stream = yield* (yield* Live).open({ accountId, sent, lastEventId }).pipe(Scope.provide(scope))
  const said = { text: "" }
  const reading = yield* Stream.runForEach(
    stream,
    (bytes) => Effect.sync(() => void (said.text += decoder.decode(bytes))),
  ).pipe(
    Effect.onExit((exit) => Scope.close(scope, exit)),
    Effect.forkChild,
  )
  return { said, reading, ended: () => reading.pollUnsafe() !== undefined }
})

const cookieOf = Effect.fnUntraced(function* (accountId: string) {
  const { cookie } = yield* signedIn(accountId)
  return { authorization: undefined, cookie: cookie.slice("mail_session=".length) }
})

layer(services)("a live stream", (it) => {
  it.effect("says something every 15 seconds, and ends within 30 of its account, its key or its session", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const live = yield* Live
      const [stays, disabled, revoked] = [
        yield* account({ plan: "pro" }),
        yield* account({ plan: "pro" }),
        yield* account({ plan: "pro" }),
      ]
      const keys = yield* ApiKeys
      const principal = {
        accountId: revoked,
        plan: "pro",
        platformAdmin: false,
        via: "cookie",
        keyId: null,
        authTime: null,
      } as const
      const { id, key } = yield* keys.create(principal, { name: "k", permissions: ["send"] })
      const quiet = yield* opened(stays, yield* cookieOf(stays))
      const byCookie = yield* opened(disabled, yield* cookieOf(disabled))
      const byKey = yield* opened(revoked, { authorization: `Bearer ${key}`, cookie: undefined })
      yield* turns(35)
      assert.isFalse(quiet.ended() || byCookie.ended() || byKey.ended())
      assert.strictEqual(quiet.said.text.split(":\n\n").length - 1, 2)
      yield* sql`update accounts set status = 'disabled' where id = ${disabled}::uuid`
      yield* keys.revoke(principal, id)
      yield* turns(32)
      assert.deepStrictEqual([quiet.ended(), byCookie.ended(), byKey.ended()], [false, true, true])
      assert.strictEqual(yield* live.count, 1)
      // The session's hour is over, and its minute of skew.
      yield* turns(3_600 / 60)
      yield* TestClock.adjust("1 hour")
      yield* turns(35)
      assert.isTrue(quiet.ended())
      assert.strictEqual(yield* live.count, 0)
    }))

  it.effect("streams of one account at one position get the same bytes", () =>
    Effect.gen(function* () {
      const me = yield* account({ plan: "pro" })
      const sent = yield* cookieOf(me)
      const streams = yield* Effect.all([opened(me, sent), opened(me, sent), opened(me, sent, "0.0")])
      yield* turns(2)
      yield* announce(notice(me), notice(me))
      yield* turns(3)
      assert.strictEqual(streams[0].said.text, streams[1].said.text)
      assert.strictEqual(streams[0].said.text.split("event: notification").length, 3)
      assert.strictEqual(streams[2].said.text.split("event: notification").length, 3)
      yield* Effect.forEach(streams, ({ reading }) => Fiber.interrupt(reading))
      assert.strictEqual(yield* (yield* Live).count, 0)
    }))
})

describe("an outlet", () => {
  const chunk = new Uint8Array(1024)
  const bytesOf = (outlet: Outlet) =>
    Effect.map(Stream.runCollect(outlet.stream(() => 0)), (chunks) => chunks.reduce((sum, c) => sum + c.length, 0))

  it.effect("is ended at 256 KiB that nobody takes", () =>
    Effect.gen(function* () {
      const outlet = new Outlet("a", null, 0)
      for (let i = 0; i < 256; i++) outlet.push(chunk, 0)
      assert.isFalse(outlet.ended)
      outlet.push(chunk, 0)
      assert.isTrue(outlet.ended)
      assert.strictEqual(yield* bytesOf(outlet), 0)
    }))

  it.effect("is ended where nothing was taken for 45 seconds, not where it is quiet", () =>
    Effect.gen(function* () {
      const start = yield* Clock.currentTimeMillis
      const outlet = new Outlet("a", null, start)
      outlet.push(chunk, start)
      for (let s = 1; s <= 45; s++) outlet.beat(heartbeat, start + s * 1_000)
      assert.isFalse(outlet.ended)
      outlet.beat(heartbeat, start + 46_000)
      assert.isTrue(outlet.ended)
      const read = new Outlet("b", null, start)
      const reading = yield* Effect.forkChild(bytesOf(read), { startImmediately: true })
      for (let s = 1; s <= 300; s++) {
        read.beat(heartbeat, start + s * 1_000)
        yield* Effect.yieldNow
      }
      assert.isFalse(read.ended)
      read.end()
      assert.strictEqual(Exit.isSuccess(yield* Fiber.await(reading)), true)
    }))

  it("behind, it waits until what it was sent is taken", () => {
    const outlet = new Outlet("a", { epoch: "e", version: 1 }, 0)
    outlet.behind = true
    for (let i = 0; i < 64; i++) outlet.push(chunk, 0)
    assert.isTrue(outlet.open)
    outlet.push(chunk, 0)
    assert.isFalse(outlet.open)
  })
})
