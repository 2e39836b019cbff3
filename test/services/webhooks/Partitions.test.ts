/** Daily partitions: created ahead, dropped as a whole, and the rows that must outlive them. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import type { AccountId, DeliveryId, WebhookId } from "../../../schemas/BrandedIds.ts"
import { DeliveryPage, FullDeliveryRecord } from "../../../schemas/mail/Delivery.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { DeliveryRecords } from "../../../services/webhooks/DeliveryRecords.ts"
import { Partitions } from "../../../services/webhooks/Partitions.ts"
import { Webhooks } from "../../../services/webhooks/Webhooks.ts"
import { noon } from "../../support/Fixtures.ts"
import {
  claimAll,
  count,
  dayMillis,
  event,
  failed,
  fixture,
  miscounted,
  now,
  on,
  resultOf,
  retention,
  session,
  settle,
  take,
  webhook,
} from "./WebhookFixture.ts"

const daysOf = Effect.fnUntraced(function* (table: string) {
  const { owner } = yield* Database
  const rows = yield* owner<{ name: string }>`
    select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = ${table}::regclass order by 1`
  return rows.map(({ name }) => name.replace(`${table}_`, ""))
})
const tables = ["events", "deliveries", "attempts"]
const upkeep = Effect.flatMap(Partitions, (partitions) => partitions.upkeep)
const page = Effect.fnUntraced(function* (hook: { id: WebhookId; accountId: AccountId }, status?: string) {
  const text = yield* (yield* DeliveryRecords).page(session(hook.accountId), hook.id, { page: 0, limit: 100, status })
  return Schema.decodeUnknownSync(Schema.fromJsonString(DeliveryPage))(text)
})
const get = Effect.fnUntraced(function* (accountId: AccountId, id: DeliveryId) {
  const text = yield* (yield* DeliveryRecords).get(accountId, id)
  return Schema.decodeUnknownSync(Schema.fromJsonString(FullDeliveryRecord))(text)
})

/** One delivery of a webhook, created now, with this end. */
const one = Effect.fnUntraced(
  function* (hook: { id: WebhookId; accountId: AccountId }, end: "delivered" | "dead" | "waits") {
    const { tasks } = yield* take([event(hook.accountId)])
    const task = tasks[0]!
    const at = yield* now
    if (end === "delivered") yield* settle([resultOf(task, at)])
    else if (end === "waits") yield* settle([failed(task, at)])
    else {
      const fatal = { ending: "interrupted", fatal: true, status: null, error: "interrupted", body: null } as const
      yield* settle([resultOf(task, at, fatal)])
    }
    return task.deliveryId
  },
)

// The first group, because ids never go back in time and the other groups go months ahead.
layer(Layer.fresh(fixture({ retention: { ...retention, carriedOver: 1 } })))(
  "Partitions with more waiting rows than are moved at once",
  (it) => {
    it.effect("a day with many waiting deliveries stays without its ended ones, and is dropped once few wait", () =>
      Effect.gen(function* () {
        yield* upkeep
        const hook = yield* webhook()
        const waiting = yield* Effect.all([one(hook, "waits"), one(hook, "waits"), one(hook, "waits")])
        const delivered = yield* one(hook, "delivered")
        const dead = yield* one(hook, "dead")
        const ids = Effect.map(page(hook), ({ items, total }) => [items.map(({ id }) => id).sort(), total])
        yield* Effect.gen(function* () {
          yield* upkeep
          for (const table of tables) {
            assert.strictEqual(yield* count(`${table}_p20260310`), 3, table)
            assert.strictEqual(yield* count(`${table}_default`), 0, table)
          }
          assert.deepStrictEqual(yield* ids, [[...waiting, dead].sort(), 4])
          assert.strictEqual((yield* Effect.exit(get(hook.accountId, delivered)))._tag, "Failure")
          assert.deepStrictEqual(yield* miscounted, [])

          const tasks = yield* claimAll(waiting.slice(1))
          yield* settle([resultOf(tasks[0]!, yield* now), resultOf(tasks[1]!, yield* now)])
          assert.strictEqual((yield* page(hook, "delivered")).total, 2)
          yield* upkeep
          for (const table of tables) {
            assert.notInclude(yield* daysOf(table), "p20260310")
            assert.strictEqual(yield* count(`${table}_default`), 1, table)
          }
          assert.deepStrictEqual(yield* ids, [[waiting[0]!, dead].sort(), 2])
          assert.deepStrictEqual(yield* miscounted, [])
        }).pipe(on(noon + 32 * dayMillis))
      }))
  },
)

layer(Layer.fresh(fixture()))("Partitions", (it) => {
  it.effect("creates yesterday to three days ahead once each, and moves earlier rows into their day", () =>
    Effect.gen(function* () {
      const hook = yield* webhook()
      const early = [yield* one(hook, "delivered"), yield* one(hook, "dead")]
      const records = Effect.forEach(early, (id) => get(hook.accountId, id))
      const before = yield* records
      assert.strictEqual(yield* count("deliveries_default"), 2)
      yield* upkeep
      const days = ["default", "p20260309", "p20260310", "p20260311", "p20260312", "p20260313"]
      for (const table of tables) {
        assert.deepStrictEqual(yield* daysOf(table), days)
        assert.strictEqual(yield* count(`${table}_default`), 0)
        // The attempt of a delivery that succeeded at once is in its own row.
        assert.strictEqual(yield* count(`${table}_p20260310`), table === "attempts" ? 1 : 2)
      }
      assert.deepStrictEqual(yield* records, before)
      yield* upkeep
      assert.deepStrictEqual(yield* daysOf("events"), days)
      yield* Effect.all([upkeep, upkeep, upkeep], { concurrency: "unbounded" }).pipe(on(noon + 2 * dayMillis))
      assert.deepStrictEqual(yield* daysOf("attempts"), [...days, "p20260314", "p20260315"])
      const { owner } = yield* Database
      const [kept] = yield* owner<{ options: ReadonlyArray<string> }>`
        select reloptions as options from pg_class where relname = 'deliveries_p20260312'`
      assert.deepStrictEqual(kept!.options, ["fillfactor=40"])
    }))

  it.effect("a day is dropped after its retention, except waiting deliveries and dead letters", () =>
    Effect.gen(function* () {
      const hook = yield* webhook()
      yield* upkeep
      const delivered = yield* one(hook, "delivered")
      const waits = yield* one(hook, "waits")
      const dead = yield* one(hook, "dead")
      const letter = yield* get(hook.accountId, dead)
      yield* (yield* Webhooks).update(hook.accountId, hook.id, { isActive: false })
      const lastDay = noon + 31 * dayMillis
      yield* upkeep.pipe(on(lastDay))
      assert.include(yield* daysOf("deliveries"), "p20260310")
      assert.strictEqual((yield* page(hook).pipe(on(lastDay))).total, 3)

      const after = noon + 32 * dayMillis
      yield* Effect.gen(function* () {
        yield* upkeep
        for (const table of tables) {
          assert.notInclude(yield* daysOf(table), "p20260310")
          assert.strictEqual(yield* count(`${table}_default`), 1, table)
        }
        assert.deepStrictEqual((yield* page(hook)).items.map(({ id, status }) => [id, status]), [
          [dead, "dead_letter"],
          [waits, "retrying"],
        ])
        for (const [status, ids] of [["delivered", []], ["dead_letter", [dead]], ["retrying", [waits]]] as const) {
          const some = yield* page(hook, status)
          assert.deepStrictEqual([some.items.map(({ id }) => id), some.total], [[...ids], ids.length])
        }
        assert.deepStrictEqual(yield* get(hook.accountId, dead), letter)
        assert.strictEqual((yield* Effect.exit(get(hook.accountId, delivered)))._tag, "Failure")
        assert.deepStrictEqual(yield* miscounted, [])

        yield* (yield* Webhooks).update(hook.accountId, hook.id, { isActive: true })
        const [task] = yield* claimAll([waits])
        assert.strictEqual(task!.attempt, 2)
        yield* settle([resultOf(task!, yield* now)])
        assert.strictEqual((yield* page(hook, "delivered")).total, 1)
        yield* upkeep
        assert.strictEqual(yield* count("deliveries_default"), 0)
        assert.strictEqual((yield* page(hook, "delivered")).total, 0)
        assert.deepStrictEqual(yield* miscounted, [])
      }).pipe(on(after))
    }))

  it.effect("dead letters are deleted after 90 days, remembered ids after 400, and neither sooner", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const hook = yield* webhook()
      const dead = yield* one(hook, "dead")
      const letters = count("dead_letters", `delivery_id = '${dead}'`)
      yield* upkeep.pipe(on(noon + 90 * dayMillis - 1))
      assert.strictEqual(yield* letters, 1)
      yield* upkeep.pipe(on(noon + 90 * dayMillis + 1_000))
      assert.strictEqual(yield* letters, 0)
      assert.deepStrictEqual(yield* miscounted, [])
      assert.strictEqual((yield* page(hook).pipe(on(noon + 91 * dayMillis))).total, 0)

      // More rows than one statement scans, with old and new ones mixed.
      yield* sql`insert into seen_events (account_id, key, seen_on)
        select uuid_in(md5(n::text)::cstring), uuid_in(md5(n::text)::cstring), date '2026-03-10' + n % 2
        from generate_series(1, 80000) n`
      const { forget } = yield* Partitions
      yield* forget.pipe(on(noon + 400 * dayMillis))
      assert.strictEqual(yield* count("seen_events"), 80_000)
      yield* forget.pipe(on(noon + 401 * dayMillis))
      assert.strictEqual(yield* count("seen_events"), 40_000)
      assert.strictEqual(yield* count("seen_events", "seen_on < '2026-03-11'"), 0)
    }))
})

layer(Layer.fresh(fixture({ retention: { ...retention, deadLetterDays: 5 } })))(
  "Partitions with a shorter retention of dead letters",
  (it) => {
    it.effect("a dead letter is deleted with its delivery although its day is still there", () =>
      Effect.gen(function* () {
        yield* upkeep
        const hook = yield* webhook()
        const dead = yield* one(hook, "dead")
        yield* one(hook, "delivered")
        yield* Effect.gen(function* () {
          yield* upkeep
          assert.deepStrictEqual(yield* miscounted, [])
          const { items, total } = yield* page(hook)
          assert.deepStrictEqual([items.length, total], [1, 1])
          assert.strictEqual((yield* Effect.exit(get(hook.accountId, dead)))._tag, "Failure")
        }).pipe(on(noon + 6 * dayMillis))
      }))
  },
)
