/** Timing of a live stream, on a virtual clock; its form on a socket is tested in test/src/http. */
import { assert, describe, it, layer } from "@effect/vitest"
import { Clock, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { AccountId } from "../../../schemas/BrandedIds.ts"
import { KeyUses } from "../../../services/authentication/KeyUses.ts"
import { ApiKeys } from "../../../services/accounts/ApiKeys.ts"
import { Principals, type Sent } from "../../../services/authentication/Principals.ts"
import { InvalidCredentials } from "../../../schemas/problems/HttpProblems.ts"
import { Live } from "../../../services/notifications/Live.ts"
import { LiveClient } from "../../../services/notifications/Live/LiveClient.ts"
import { heartbeat } from "../../../services/platform/StreamOutlet.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { account, ground, sessions, signedIn } from "../../support/TestAccounts.ts"
import { announce, notice } from "./NotificationFixture.ts"

const services = Layer.mergeAll(Live.layer, ApiKeys.layer).pipe(
  Layer.provideMerge(Principals.layer),
  Layer.provide(KeyUses.layer),
  Layer.provideMerge(sessions),
  Layer.provideMerge(ground),
)

const turn = (millis: number) =>
  Effect.andThen(TestClock.adjust(millis), Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 5))))

/** Moves the virtual clock by seconds, with real pauses for the loops' database statements. */
const turns = (count: number) => Effect.repeat(turn(1_000), { times: count - 1 })

/** Waits, in real time, until a loop has brought about `holds`. */
const comes = (holds: () => boolean) =>
  Effect.repeat(Effect.map(turn(5), holds), { until: (held) => held, times: 2_000 }).pipe(
    Effect.map((held) => assert.isTrue(held, "it did not happen")),
  )

/** Whether a stream has sent its first counts: later changes are then sent as events. */
const greeted = ({ said }: { readonly said: { readonly text: string } }) => said.text.includes("event: counts")

const decoder = new TextDecoder()

/** A stream whose client reads everything, and the text sent so far. */
const opened = Effect.fnUntraced(function* (accountId: AccountId, sent: Sent, lastEventId?: string) {
  const credential = (yield* Principals).present(sent)
  const outlet = yield* (yield* Live).open({ accountId, credential, lastEventId })
  const clock = yield* Clock.Clock
  const said = { text: "", at: [] as Array<number> }
  let ended = false
  outlet.attach({
    write: (bytes) => {
      said.text += decoder.decode(bytes)
      said.at.push(clock.currentTimeMillisUnsafe())
      return true
    },
    end: () => void (ended = true),
  })
  return { said, ended: () => ended, leave: () => outlet.gone() }
})

const cookieOf = Effect.fnUntraced(function* (accountId: AccountId) {
  const { cookie } = yield* signedIn(accountId)
  return { authorization: undefined, cookie: cookie.slice("mail_session=".length) }
})

layer(services)("a live stream", (it) => {
  it.effect("sends something every 15 seconds, and ends within 30 of its account, key or session", () =>
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
      yield* comes(() => [quiet, byCookie, byKey].every(greeted))
      // A query at 30 seconds may delay the next one by its own duration: only the order is certain.
      const beats = () => quiet.said.text.split(":\n\n").length - 1
      yield* Effect.repeat(turn(1_000), { until: () => beats() === 2, times: 1_000 })
      assert.isFalse(quiet.ended() || byCookie.ended() || byKey.ended())
      const [counted, first, second] = quiet.said.at.slice(-3)
      assert.closeTo(first! - counted!, 15_500, 500)
      assert.isAtLeast(second! - first!, 15_000)
      yield* sql`update accounts set status = 'disabled' where id = ${disabled}::uuid`
      yield* keys.revoke(principal, id)
      yield* turns(32)
      yield* comes(() => byCookie.ended() && byKey.ended())
      assert.deepStrictEqual([quiet.ended(), byCookie.ended(), byKey.ended()], [false, true, true])
      assert.strictEqual(yield* live.count, 1)
      // The session's hour is over, and its minute of clock skew.
      yield* turns(3_600 / 60)
      yield* TestClock.adjust("1 hour")
      yield* turns(35)
      yield* comes(quiet.ended)
      assert.strictEqual(yield* live.count, 0)
    }))

  it.effect("sends the same bytes to every stream of one account at one position", () =>
    Effect.gen(function* () {
      const me = yield* account({ plan: "pro" })
      const sent = yield* cookieOf(me)
      const streams = yield* Effect.all([opened(me, sent), opened(me, sent), opened(me, sent, "0.0")])
      yield* comes(() => streams.every(greeted))
      yield* announce(notice(me), notice(me))
      yield* comes(() => streams.every(({ said }) => said.text.split("event: notification").length === 3))
      // All but the client's retry delay.
      const [one, two] = streams.map(({ said }) => said.text.replace(/^retry: \d+\n\n/, ""))
      assert.strictEqual(one, two)
      for (const stream of streams) stream.leave()
      assert.strictEqual(yield* (yield* Live).count, 0)
    }))
})

describe("the outlet of a live stream", () => {
  const chunk = new Uint8Array(1024)
  const nobody = Effect.fail(new InvalidCredentials())

  /** An outlet with a clock of its own, and a connection that accepts chunks until `wants` is used up. */
  const made = () => {
    const time = { now: 0 }
    const seen = { left: 0, taken: 0, ended: [] as Array<boolean>, wants: Infinity }
    const outlet = new LiveClient(
      { now: () => time.now, left: () => void seen.left++ },
      AccountId.make("a"),
      nobody,
      null,
      0,
    )
    const attach = () =>
      outlet.attach({
        write: (bytes) => {
          seen.taken += bytes.length
          return --seen.wants > 0
        },
        end: (whole) => void seen.ended.push(whole),
      })
    return { outlet, attach, seen, time }
  }

  it("is ended once 256 KiB wait to be written, and writes nothing more", () => {
    const { attach, outlet, seen } = made()
    seen.wants = 1
    attach()
    for (let i = 0; i < 257; i++) outlet.push(chunk)
    assert.isFalse(outlet.ended)
    outlet.push(chunk)
    assert.isTrue(outlet.ended)
    outlet.drained()
    outlet.push(chunk)
    outlet.end()
    outlet.gone()
    assert.deepStrictEqual([seen.taken, seen.ended, seen.left], [1024, [false], 1])
  })

  it("is ended if its client accepts nothing for 45 seconds, not if it has nothing to send", () => {
    const { outlet, seen, time } = made()
    outlet.push(chunk)
    for (time.now = 1_000; time.now <= 45_000; time.now += 1_000) outlet.beat()
    assert.isFalse(outlet.ended)
    time.now = 46_000
    outlet.beat()
    assert.deepStrictEqual([outlet.ended, seen.left], [true, 1])
    const read = made()
    read.attach()
    for (; read.time.now < 300_000; read.time.now += 1_000) read.outlet.beat()
    assert.strictEqual(read.seen.taken, 19 * heartbeat.length)
    read.outlet.end()
    assert.deepStrictEqual([read.seen.ended, read.seen.left], [[true], 1])
  })

  it("writes in order, as much as the connection accepts", () => {
    const { attach, outlet, seen } = made()
    for (const n of [1, 2, 3, 4, 5]) outlet.push(new Uint8Array(n))
    seen.wants = 2
    attach()
    assert.strictEqual(seen.taken, 1 + 2)
    outlet.push(new Uint8Array(6))
    seen.wants = 3
    outlet.drained()
    assert.strictEqual(seen.taken, 1 + 2 + 3 + 4 + 5)
    seen.wants = Infinity
    outlet.drained()
    outlet.push(new Uint8Array(7))
    assert.strictEqual(seen.taken, 28)
    outlet.gone()
    assert.deepStrictEqual([seen.ended, seen.left], [[], 1])
  })

  it("replays nothing more until the client has accepted what was sent", () => {
    const { outlet } = made()
    outlet.behind = true
    for (let i = 0; i < 64; i++) outlet.push(chunk)
    assert.isTrue(outlet.open)
    outlet.push(chunk)
    assert.isFalse(outlet.open)
  })
})
