/** Events as a careless publisher sends them: malformed, twice, and before their account. */
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { Buffer } from "node:buffer"
import { randomUUID } from "node:crypto"
import { eventTypes, mailEvent, subjectOf } from "./support/EventFeed.ts"
import { cli } from "./support/ProgramInstance.ts"
import { receiver } from "./support/Receiver.ts"
import { until } from "./support/Until.ts"
import { hook, totals } from "./support/ProgramWebhooks.ts"
import { accountLine, fixture, type ProgramFixture } from "./support/ProgramFixture.ts"

class Around extends Context.Service<Around, ProgramFixture>()("bailiwick/test/e2e/Events/Around") {
  static readonly layer = Layer.effect(Around, fixture())
}

const delivered = subjectOf("email.delivered")

/** Counts everything ever published here: a test that is tried again adds to the doctor's numbers. */
let malformedOnes = 0

/** Messages that are no events, each in its own way; all on the subject of `email.delivered`. */
const malformed = (accountId: string): ReadonlyArray<string> => {
  const good = mailEvent(accountId, "bad")
  const without = (...path: ReadonlyArray<string>) => {
    const copy = JSON.parse(JSON.stringify(good))
    const last = path.at(-1)!
    const parent = path.slice(0, -1).reduce((at, name) => at[name], copy)
    delete parent[last]
    return JSON.stringify(copy)
  }
  const changed = (fields: object) => JSON.stringify({ ...good, ...fields })
  return [
    "",
    "not JSON",
    "[]",
    "null",
    '{"id":"cut',
    ...["id", "event", "account_id", "email_id", "recipient", "timestamp", "metadata"].map((name) => without(name)),
    without("metadata", "subject"),
    without("metadata", "tag"),
    changed({ event: "email.bounced" }),
    changed({ event: "email.exploded" }),
    changed({ account_id: "somebody" }),
    changed({ id: "x".repeat(201) }),
    changed({ id: "with\u0000nul" }),
    changed({ timestamp: "yesterday" }),
    changed({ timestamp: "2026-02-30T00:00:00Z" }),
    changed({ metadata: { ...good.metadata, deep: JSON.parse("[".repeat(64) + "]".repeat(64)) } }),
    changed({ metadata: { ...good.metadata, long: "x".repeat(Buffer.poolSize * 16) } }),
  ]
}

layer(Around.layer, { excludeTestServices: true, timeout: "2 minutes" })("events", (it) => {
  it.effect("that are malformed are set aside, and the others arrive", () =>
    Effect.gen(function* () {
      const { account, env, feed, home, tls } = yield* Around
      const { api, id } = yield* account()
      const target = yield* receiver(tls)
      const { id: hookId, path } = yield* hook(api, target, "/good", eventTypes)
      const bad = malformed(id)
      for (const [i, data] of bad.entries()) {
        yield* feed.events([mailEvent(id, String(i), eventTypes[i % eventTypes.length])])
        yield* feed.publish(delivered, data)
        malformedOnes++
      }
      yield* until("the good ones", totals(api, hookId), ({ delivered }) => delivered === bad.length)
      assert.strictEqual((yield* totals(api, hookId)).all, bad.length)
      assert.deepStrictEqual(target.at(path).flatMap(({ fault }) => fault ?? []), [])
      const emails = target.at(path).map(({ body }) => JSON.parse(body).email_id)
      assert.deepStrictEqual(emails.sort(), bad.map((_, i) => `em_${i}`).sort())
      // The operator sees the number of rejected messages, and the reasons.
      const doctor = yield* until(
        "the doctor",
        cli({ ...env, BAILIWICK_HOME: home }, "doctor"),
        ({ output }) => output.includes(` ${malformedOnes} rejected`),
      )
      assert.include(doctor.output, "invalid_event")
      assert.include(doctor.output, "wrong_subject")
    }), 240_000)

  it.effect("that are repeated are delivered once, also when the broker stores each of them", () =>
    Effect.gen(function* () {
      const { account, feed, tls } = yield* Around
      const [one, two] = yield* Effect.all([account(), account()], { concurrency: 2 })
      const target = yield* receiver(tls)
      const first = yield* hook(one.api, target, "/one", ["email.delivered"])
      const second = yield* hook(two.api, target, "/two", ["email.delivered"])
      const again = JSON.stringify(mailEvent(one.id, "same"))
      // Without a message id the broker stores each of them.
      yield* Effect.all([1, 2, 3].map(() => feed.publish(delivered, again)), { concurrency: 3 })
      yield* until("the first", totals(one.api, first.id), ({ delivered }) => delivered === 1)
      yield* feed.publish(delivered, again)
      yield* feed.publish(delivered, JSON.stringify({ ...mailEvent(one.id, "same"), email_id: "other" }))
      // The same id of another account is another event.
      yield* feed.events([mailEvent(two.id, "same"), mailEvent(one.id, "last")])
      yield* until("the other account's", totals(two.api, second.id), ({ delivered }) => delivered === 1)
      yield* until("the last", totals(one.api, first.id), ({ delivered }) => delivered === 2)
      assert.strictEqual((yield* totals(one.api, first.id)).all, 2)
      assert.deepStrictEqual(target.at("/one").map(({ body }) => JSON.parse(body).email_id), ["em_same", "em_last"])
      assert.lengthOf(target.at("/two"), 1)
    }))

  it.effect("that come before their account wait for it", () =>
    Effect.gen(function* () {
      const { account, feed, tls } = yield* Around
      const { api, id } = yield* account()
      const target = yield* receiver(tls)
      const { id: hookId } = yield* hook(api, target, "/late", ["email.opened"])
      const line = (version: number, fields: object) => JSON.stringify({ kind: "account", id, version, ...fields })
      yield* feed.publish("intake.v1.directory.account", line(2, { removed: true }))
      yield* until("the removal", api.get("/v1/webhooks/"), ({ status }) => status === 401)
      const other = yield* account()
      const heard = yield* hook(other.api, target, "/heard", ["email.opened"])
      yield* feed.events([mailEvent(id, "early", "email.opened"), mailEvent(randomUUID(), "nobody", "email.opened")])
      yield* feed.events([mailEvent(other.id, "after", "email.opened")])
      yield* until("what came after", totals(other.api, heard.id), ({ delivered }) => delivered === 1)
      assert.lengthOf(target.at("/late"), 0)
      yield* feed.publish("intake.v1.directory.account", accountLine(id, "business", 3))
      yield* until("the account", api.get("/v1/webhooks/"), ({ status }) => status === 200)
      yield* until("what waited", totals(api, hookId), ({ delivered }) => delivered === 1)
      assert.deepInclude(target.at("/late")[0], { fault: null, attempt: 1 })
    }))
})
