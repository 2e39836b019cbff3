/** The live tail of deliveries on a virtual clock; its form on a socket is tested in test/src/http. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import type { AccountId } from "../../../schemas/BrandedIds.ts"
import type { DeliveryRecord } from "../../../schemas/mail/Delivery.ts"
import { InvalidCredentials } from "../../../schemas/problems/HttpProblems.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { AccountDeliveries } from "../../../services/webhooks/AccountDeliveries.ts"
import { DeliveryStream } from "../../../services/webhooks/DeliveryStream.ts"
import { account } from "../../support/TestAccounts.ts"
import { event, failed, fixture, now, resultOf, retention, session, settle, take, webhook } from "./WebhookFixture.ts"

const looks = { lists: 0 }

/** The real list, each reading of which is counted. */
const countedLists = Layer.effect(
  AccountDeliveries,
  Effect.map(AccountDeliveries, (real) => ({
    ...real,
    list: (...asked: Parameters<typeof real.list>) =>
      Effect.andThen(Effect.sync(() => void looks.lists++), real.list(...asked)),
  })),
).pipe(Layer.provide(AccountDeliveries.layer(retention)))

const services = DeliveryStream.layer.pipe(Layer.provideMerge(countedLists), Layer.provideMerge(fixture()))

const turn = (millis: number) =>
  Effect.andThen(TestClock.adjust(millis), Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 5))))
const turns = (count: number) => Effect.repeat(turn(1_000), { times: count - 1 })

/** Waits, in real time, until a loop has brought about `holds`. */
const comes = (holds: () => boolean) =>
  Effect.repeat(Effect.map(turn(5), holds), { until: (held) => held, times: 4_000 }).pipe(
    Effect.map((held) => assert.isTrue(held, "it did not happen")),
  )

interface Told {
  readonly event: string
  readonly items: ReadonlyArray<DeliveryRecord>
  readonly skipped?: boolean
}

const decoder = new TextDecoder()

/** A stream whose client reads everything, and the events so far. */
const opened = Effect.fnUntraced(function* (accountId: AccountId, standing = { refused: false }) {
  const credential = Effect.suspend(() =>
    standing.refused ? Effect.fail(new InvalidCredentials()) : Effect.succeed(session(accountId))
  )
  const outlet = yield* (yield* DeliveryStream).open({ accountId, credential })
  const told: Array<Told> = []
  let ended = false
  outlet.attach({
    write: (bytes) => {
      const [, name, data] = /^event: (\w+)\ndata: (.*)$/m.exec(decoder.decode(bytes)) ?? []
      if (name !== undefined) told.push({ event: name, ...JSON.parse(data!) })
      return true
    },
    end: () => void (ended = true),
  })
  return { told, ended: () => ended, leave: () => outlet.gone() }
})

/** New deliveries whose first attempts are under way. */
const begun = (accountId: AccountId, count: number) =>
  Effect.map(take(Array.from({ length: count }, () => event(accountId))), ({ tasks }) => tasks)

layer(services)("the live tail of deliveries", (it) => {
  it.effect("nobody looks: nothing is read; all streams of an account share one look a tick", () =>
    Effect.gen(function* () {
      yield* turns(20)
      assert.strictEqual(looks.lists, 0)
      const { accountId } = yield* webhook()
      const streams = yield* Effect.forEach(Array.from({ length: 6 }), () => opened(accountId))
      yield* comes(() => streams.every(({ told }) => told.length > 0))
      const before = looks.lists
      yield* turns(10)
      assert.isAtMost(looks.lists - before, 11)
      // A later one begins with the newest deliveries, without a look of its own.
      const late = yield* opened(accountId)
      assert.deepStrictEqual(late.told, [{ event: "newest", items: [] }])
      for (const { leave } of [...streams, late]) leave()
      yield* turns(2)
      const after = looks.lists
      yield* turns(40)
      assert.strictEqual(looks.lists, after)
      assert.strictEqual(yield* (yield* DeliveryStream).count, 0)
    }))

  it.effect("tells what is new and what changes, once, and says when it skipped some", () =>
    Effect.gen(function* () {
      const { accountId } = yield* webhook()
      const [first] = yield* begun(accountId, 1)
      const { leave, told } = yield* opened(accountId)
      yield* comes(() => told.length > 0)
      assert.deepStrictEqual(told.map(({ event, items }) => [event, items.map(({ status }) => status)]), [
        ["newest", ["pending"]],
      ])
      yield* settle([failed(first!, yield* now)])
      yield* comes(() => told.some(({ items }) => items[0]?.status === "retrying"))
      const [second] = yield* begun(accountId, 1)
      yield* settle([resultOf(second!, yield* now)])
      yield* comes(() => told.some(({ items }) => items.some(({ id }) => id === second!.deliveryId)))
      const changes = told.flatMap(({ items }) => items.map(({ id, status }) => `${id} ${status}`))
      assert.strictEqual(new Set(changes).size, changes.length, "nothing is told twice")
      assert.isFalse(told.some(({ skipped }) => skipped))
      yield* begun(accountId, 60)
      yield* comes(() => told.some(({ skipped }) => skipped === true))
      assert.strictEqual(told.find(({ skipped }) => skipped)!.items.length, 50)
      leave()
    }))

  it.effect("a quiet stream tells an empty event every ten seconds", () =>
    Effect.gen(function* () {
      const { accountId } = yield* webhook()
      const { leave, told } = yield* opened(accountId)
      yield* comes(() => told.length > 0)
      const began = yield* now
      // Each second with a real pause for the look's statement.
      yield* Effect.repeat(turn(1_000), { until: () => told.length === 3, times: 400 })
      assert.isAtLeast((yield* now) - began, 19_000)
      assert.deepStrictEqual(told.slice(1), [
        { event: "changed", items: [], skipped: false },
        { event: "changed", items: [], skipped: false },
      ])
      leave()
    }))

  it.effect("ends with its credential and with its account; ten for each account", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const [left, disabled, stays] = [
        yield* account({ plan: "pro" }),
        yield* account({ plan: "pro" }),
        yield* account({ plan: "pro" }),
      ]
      const standing = { refused: false }
      const streams = [yield* opened(left, standing), yield* opened(disabled), yield* opened(stays)]
      standing.refused = true
      yield* sql`update accounts set status = 'disabled' where id = ${disabled}::uuid`
      yield* turns(34)
      assert.deepStrictEqual(streams.map(({ ended }) => ended()), [true, true, false])
      const more = yield* Effect.forEach(Array.from({ length: 9 }), () => opened(stays))
      assert.strictEqual((yield* Effect.flip(opened(stays))).code, "rate_limited")
      more[0]!.leave()
      more.push(yield* opened(stays))
      for (const { leave } of [...streams, ...more]) leave()
    }))
})
