/** A webhook that failed for five days: its account hears of it once an episode, and it is paused where that is set. */
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Logger } from "effect"
import type { AccountId } from "../../../schemas/BrandedIds.ts"
import { lock } from "../../../services/platform/database/AdvisoryLocks.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { CountCompaction } from "../../../services/webhooks/CountCompaction.ts"
import { expired } from "../../../services/webhooks/Deliveries/DeliveryClaims.ts"
import { FailingWebhooks } from "../../../services/webhooks/FailingWebhooks.ts"
import { Partitions } from "../../../services/webhooks/Partitions.ts"
import { Webhooks } from "../../../services/webhooks/Webhooks.ts"
import { noon } from "../../support/Fixtures.ts"
import { count, dayMillis, event, failed, fixture, on, resultOf, settle, take, webhook } from "./WebhookFixture.ts"

const withTelling = (pause: boolean) =>
  Layer.fresh(FailingWebhooks.layer({ pause }).pipe(Layer.provideMerge(fixture())))

const at = (days: number) => noon + days * dayMillis

const tellAt = (days: number) => Effect.flatMap(FailingWebhooks, ({ tell }) => tell).pipe(on(at(days)))

/** Takes an event of this day. */
const taken = Effect.fnUntraced(function* (hook: { readonly accountId: AccountId }, days: number) {
  yield* (yield* Partitions).upkeep.pipe(on(at(days)))
  return yield* take([event(hook.accountId)]).pipe(on(at(days)))
})

/** Ends an attempt that began at this day, and compacts. */
const attempt = Effect.fnUntraced(function* (hook: { readonly accountId: AccountId }, days: number, ok = false) {
  const { tasks } = yield* taken(hook, days)
  yield* settle([(ok ? resultOf : failed)(tasks[0]!, at(days))]).pipe(on(at(days)))
  yield* (yield* CountCompaction).compact
})

const notices = Effect.fnUntraced(function* (accountId: string) {
  const { owner } = yield* Database
  return yield* owner<{ title: string; body: string; severity: string; href: string }>`
    select title, body, severity, href from notifications where account_id = ${accountId}::uuid order by id`
})

layer(withTelling(false))("a failing webhook", (it) => {
  it.effect("is told of five days after the first failure, once, also where turns and processes repeat it", () =>
    Effect.gen(function* () {
      const hook = yield* webhook()
      yield* attempt(hook, 0)
      yield* attempt(hook, 4.99)
      assert.strictEqual(yield* tellAt(4.99), 0)
      // No attempt was made since: it is not known whether it fails still.
      assert.strictEqual(yield* tellAt(6), 0)
      yield* attempt(hook, 5)
      const told = yield* Effect.all([1, 2, 3, 4].map(() => tellAt(5)), { concurrency: "unbounded" })
      assert.isAtMost(told.reduce((sum, n) => sum + n, 0), 1)
      yield* tellAt(5)
      yield* attempt(hook, 9)
      assert.strictEqual(yield* tellAt(12), 0)
      const all = yield* notices(hook.accountId)
      assert.deepStrictEqual(all.map(({ severity, title }) => [severity, title]), [
        ["warning", "A webhook has failed for five days"],
      ])
      assert.include(all[0]!.href, hook.id)
      const ids = `select id::text from notifications where account_id = '${hook.accountId}'`
      assert.strictEqual(yield* count("mails", `subject_id in (${ids})`), 1)
      assert.isTrue((yield* (yield* Webhooks).get(hook.accountId, hook.id)).is_active, "pausing is off by default")
    }))

  it.effect("is told of at once where a compaction is in progress: its end is waited for", () =>
    Effect.gen(function* () {
      const { owner, sql } = yield* Database
      const hook = yield* webhook()
      yield* attempt(hook, 0)
      yield* attempt(hook, 5)
      const [held, over] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const compacting = yield* lock(owner, "counts").pipe(
        Effect.andThen(Deferred.succeed(held, undefined)),
        Effect.andThen(Deferred.await(over)),
        owner.withTransaction,
        Effect.forkChild,
      )
      yield* Deferred.await(held)
      const telling = yield* Effect.forkChild(tellAt(5))
      const waiting = sql`
        select from pg_stat_activity where wait_event_type = 'Lock' and wait_event = 'advisory' and datname = current_database()`
      yield* Effect.repeat(waiting, { until: ({ length }) => length > 0 })
      yield* Deferred.succeed(over, undefined)
      yield* Fiber.join(compacting)
      assert.strictEqual(yield* Fiber.join(telling), 1)
    }))

  it.effect("is told of later where a compaction takes longer: a turn waits for its end once, not once a webhook", () =>
    Effect.gen(function* () {
      const { owner } = yield* Database
      for (const hook of [yield* webhook(), yield* webhook()]) {
        yield* attempt(hook, 0)
        yield* attempt(hook, 5)
      }
      const lines: Array<string> = []
      const listening = Logger.layer([Logger.map(Logger.formatJson, (line) => void lines.push(line))])
      const told = yield* lock(owner, "counts").pipe(
        Effect.andThen(Effect.provide(tellAt(5), listening)),
        owner.withTransaction,
      )
      assert.deepStrictEqual([told, lines.length], [0, 1], lines.join("\n"))
      assert.strictEqual(yield* tellAt(5), 2)
    }))

  it.effect("is told of again after a success, five days after the next failure", () =>
    Effect.gen(function* () {
      const hook = yield* webhook()
      for (const days of [0, 5]) yield* attempt(hook, days)
      assert.strictEqual(yield* tellAt(5), 1)
      yield* attempt(hook, 6, true)
      for (const days of [6.1, 11]) yield* attempt(hook, days)
      assert.strictEqual(yield* tellAt(11), 0)
      yield* attempt(hook, 11.1)
      assert.deepStrictEqual([yield* tellAt(11.1), yield* tellAt(11.2)], [1, 0])
    }))

  it.effect("a success between is no episode, and neither are five days with a failure only at one end", () =>
    Effect.gen(function* () {
      const [recovers, rests] = [yield* webhook(), yield* webhook()]
      yield* attempt(recovers, 0)
      yield* attempt(recovers, 3, true)
      yield* attempt(recovers, 5.5)
      yield* attempt(rests, 0)
      assert.strictEqual(yield* tellAt(7), 0)
    }))

  it.effect("a success ends the episode before its minute is compacted", () =>
    Effect.gen(function* () {
      const hook = yield* webhook()
      for (const days of [0, 5]) yield* attempt(hook, days)
      const { tasks } = yield* taken(hook, 5.1)
      yield* settle([resultOf(tasks[0]!, at(5.1))]).pipe(on(at(5.1)))
      assert.strictEqual(yield* tellAt(5.1), 0)
    }))

  it.effect("attempts that processes here left without an outcome are no failures", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const hook = yield* webhook()
      yield* attempt(hook, 0, true)
      for (const days of [1, 6.5]) {
        yield* taken(hook, days)
        const results = yield* expired(sql, 100).pipe(on(at(days) + 60_000))
        assert.lengthOf(results, 1)
        yield* settle(results).pipe(on(at(days) + 60_000))
        yield* (yield* CountCompaction).compact
        // It is not claimed again by this test.
        yield* sql`delete from delivery_queue`
      }
      const { failing_since, health } = yield* (yield* Webhooks).get(hook.accountId, hook.id)
      assert.deepStrictEqual([health, failing_since], ["healthy", null])
      // Beside one in the same minute, the receiver's failure counts.
      yield* attempt(hook, 7)
      yield* attempt(hook, 12)
      assert.strictEqual(yield* tellAt(12), 1)
    }))

  it.effect("a paused one is not told of; resumed, or with another address, it has five days more", () =>
    Effect.gen(function* () {
      const { update } = yield* Webhooks
      const hook = yield* webhook()
      yield* attempt(hook, 0)
      yield* attempt(hook, 4)
      yield* update(hook.accountId, hook.id, { isActive: false }).pipe(on(at(4.5)))
      assert.strictEqual(yield* tellAt(9), 0)
      yield* update(hook.accountId, hook.id, { isActive: true }).pipe(on(at(9)))
      yield* attempt(hook, 9.1)
      assert.strictEqual(yield* tellAt(9.2), 0)
      yield* update(hook.accountId, hook.id, { url: "http://127.0.0.1:20997/" }).pipe(on(at(13)))
      yield* attempt(hook, 14.5)
      assert.strictEqual(yield* tellAt(14.5), 0)
      yield* attempt(hook, 18)
      assert.strictEqual(yield* tellAt(18), 1)
      // An episode that was told begins anew as well.
      yield* update(hook.accountId, hook.id, { isActive: false }).pipe(on(at(19)))
      yield* update(hook.accountId, hook.id, { isActive: true }).pipe(on(at(20)))
      yield* attempt(hook, 25)
      assert.deepStrictEqual([yield* tellAt(25), yield* tellAt(26)], [1, 0])
      assert.lengthOf(yield* notices(hook.accountId), 2 + 2, "two pauses by request, two tellings")
    }))

  it.effect("a deleted one is not told of", () =>
    Effect.gen(function* () {
      const hook = yield* webhook()
      for (const days of [0, 6]) yield* attempt(hook, days)
      yield* (yield* Webhooks).remove(hook.accountId, hook.id)
      assert.strictEqual(yield* tellAt(6), 0)
    }))
})

layer(withTelling(true))("a failing webhook where the installation pauses it", (it) => {
  it.effect("is paused with its queue, by the system, and its account is told; resumed, it is delivered to", () =>
    Effect.gen(function* () {
      const { get, update } = yield* Webhooks
      const { owner } = yield* Database
      const [hook, other] = [yield* webhook(), yield* webhook()]
      for (const days of [0, 6]) yield* attempt(hook, days)
      yield* attempt(other, 0)
      const before = yield* owner<{ version: number }>`select version from webhooks where id = ${hook.id}::uuid`
      assert.strictEqual(yield* tellAt(6), 1)
      const { health, is_active, updated_at } = yield* get(hook.accountId, hook.id)
      assert.deepStrictEqual([is_active, health, updated_at], [false, "paused", new Date(at(6)).toISOString()])
      assert.isTrue((yield* get(other.accountId, other.id)).is_active)
      assert.strictEqual(yield* count("webhook_lanes", `paused and webhook_id = '${hook.id}'`), 1)
      // Claims compare the version, so that none of the time before is sent.
      assert.strictEqual(
        yield* count("webhooks", `id = '${hook.id}' and version = ${before[0]!.version + 1}`),
        1,
      )
      const audited = yield* owner<{ actor: string }>`
        select actor from audit_records where action = 'webhook.paused' and subject = ${`webhook:${hook.id}`}`
      assert.deepStrictEqual(audited.map(({ actor }) => actor), ["system"])
      assert.deepStrictEqual((yield* notices(hook.accountId)).map(({ severity, title }) => [severity, title]), [
        ["critical", "A failing webhook was paused"],
      ])
      const accepted = yield* taken(hook, 6.1)
      assert.lengthOf(accepted.tasks, 0)
      yield* update(hook.accountId, hook.id, { isActive: true }).pipe(on(at(7)))
      yield* attempt(hook, 7.1)
      assert.strictEqual(yield* tellAt(7.1), 0)
      assert.isTrue((yield* get(hook.accountId, hook.id)).is_active)
    }))
})
