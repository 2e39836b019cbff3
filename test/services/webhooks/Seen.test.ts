/** An id that its account has sent before is dropped for the promised time, whatever the event's other fields. */
import { assert, describe, it as plain, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { hash } from "node:crypto"
import { AccountId, SourceEventId } from "../../../schemas/BrandedIds.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { leastIdAt } from "../../../services/platform/Ids.ts"
import { seenKeyOf, timeOf } from "../../../services/webhooks/Deliveries/SeenKey.ts"
import { Partitions } from "../../../services/webhooks/Partitions.ts"
import { noon } from "../../support/Fixtures.ts"
import { count, dayMillis, event, fixture, on, take, webhook } from "./WebhookFixture.ts"

/** Ids of each kind, for the time `at`. */
const idsAt = (at: number, n: number) => {
  const low = n.toString(16).padStart(12, "0")
  const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
  const time = Array.from({ length: 10 }, (_, i) => alphabet[Math.floor(at / 32 ** (9 - i)) % 32]).join("")
  return [`${leastIdAt(at).slice(0, 24)}${low}`, `${time}${String(n).padStart(16, "0")}`, `evt_${n}`, `${n}`]
}

const upkeep = Effect.flatMap(Partitions, (partitions) => Effect.andThen(partitions.upkeep, partitions.forget))

const [a, b] = [AccountId.make("a"), AccountId.make("b")]

describe("the key of an accepted event", () => {
  plain("begins with the time in the id, and depends only on account and id", () => {
    for (const at of [0x1_0000, noon, noon + 1, 2 ** 47]) {
      const [uuid, ulid, opaque, number] = idsAt(at, 7)
      assert.deepStrictEqual([uuid, ulid, opaque, number].map((id) => timeOf(id!)), [at, at, 0, 0])
      assert.strictEqual(timeOf(uuid!.toUpperCase()), at)
    }
    for (const odd of ["", "01ARZ3NDEKTSV4RRFFQ69G5FA", "81ARZ3NDEKTSV4RRFFQ69G5FAV", crypto.randomUUID()]) {
      assert.strictEqual(timeOf(odd), 0)
    }
    const [one, upper, opaque] = [idsAt(noon, 1)[0]!, `${idsAt(noon, 1)[0]!.toUpperCase()} `, "evt_1"].map((id) =>
      SourceEventId.make(id)
    )
    assert.notStrictEqual(seenKeyOf(a, one!).key, seenKeyOf(b, one!).key)
    assert.notStrictEqual(seenKeyOf(a, one!).key, seenKeyOf(a, upper!).key)
    assert.match(seenKeyOf(a, opaque!).key, /^0{12}[0-9a-f]{20}$/)
    assert.strictEqual(seenKeyOf(a, opaque!).before, hash("sha256", "a.evt_1", "hex").slice(0, 32))
  })
})

layer(Layer.fresh(fixture()))("accepted event ids", (it) => {
  it.effect("an id is accepted once, also days later; another account may use the same id", () =>
    Effect.gen(function* () {
      yield* upkeep
      const hook = yield* webhook()
      // For a day with a partition, for an old one without, and for one far ahead.
      const ids = [noon, noon - 200 * dayMillis, noon + 50 * dayMillis].flatMap((at, n) => idsAt(at, n))
      const first = yield* take(ids.map((sourceId) => event(hook.accountId, { sourceId })))
      assert.deepStrictEqual([first.deliveries, first.duplicates], [12, 0])
      for (const days of [0, 1, 30, 49, 51, 399]) {
        yield* Effect.gen(function* () {
          yield* upkeep
          const again = yield* take(ids.map((sourceId) => event(hook.accountId, { sourceId })))
          assert.deepStrictEqual([again.deliveries, again.duplicates], [0, 12], `${days} days later`)
        }).pipe(on(noon + days * dayMillis))
      }
      // Ids of another account are separate.
      const other = yield* webhook()
      const theirs = yield* take(ids.map((sourceId) => event(other.accountId, { sourceId })))
      assert.strictEqual(theirs.deliveries, 12)
    }))

  it.effect("ids in the older table seen_events are recognised", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const hook = yield* webhook()
      const ids = idsAt(noon, 90)
      for (const id of ids) {
        yield* sql`insert into seen_events (account_id, key, seen_on)
          values (${hook.accountId}::uuid, ${
          seenKeyOf(hook.accountId, SourceEventId.make(id)).before
        }::uuid, '2026-03-01')`
      }
      const { deliveries, duplicates } = yield* take(
        [...ids, "new"].map((sourceId) => event(hook.accountId, { sourceId })),
      )
      assert.deepStrictEqual([deliveries, duplicates], [1, 4])
    }))

  it.effect("six batches with the same ids at once accept each id once", () =>
    Effect.gen(function* () {
      const hook = yield* webhook()
      const ids = Array.from({ length: 20 }, (_, n) => idsAt(noon + n, 300 + n)).flat()
      const taken = yield* Effect.forEach(
        Array.from({ length: 6 }),
        () => take(ids.map((sourceId) => event(hook.accountId, { sourceId }))),
        { concurrency: "unbounded" },
      )
      assert.strictEqual(taken.reduce((sum, { deliveries }) => sum + deliveries, 0), ids.length)
    }))
})

layer(Layer.fresh(fixture()))("old accepted event ids", (it) => {
  it.effect("partitions are dropped after the retention; an id that arrived late is kept for the full retention", () =>
    Effect.gen(function* () {
      const days = Effect.map(
        Effect.flatMap(
          Database,
          ({ owner }) =>
            owner<
              { name: string }
            >`select relname as name from pg_class where relname ~ '^seen_ids_p[0-9]{8}$' order by 1`,
        ),
        (rows) => rows.map(({ name }) => name.slice("seen_ids_p".length)),
      )
      yield* upkeep
      assert.deepStrictEqual(yield* days, ["20260309", "20260310", "20260311", "20260312", "20260313"])
      const hook = yield* webhook()
      const ids = idsAt(noon, 1)
      yield* take(ids.map((sourceId) => event(hook.accountId, { sourceId })))
      assert.strictEqual(yield* count("seen_ids_p20260310"), 2)
      assert.strictEqual(yield* count("seen_ids_timeless"), 2)
      // Created on the same day, but received 399 days later.
      const late = idsAt(noon, 2)
      yield* take(late.map((sourceId) => event(hook.accountId, { sourceId }))).pipe(on(noon + 399 * dayMillis))
      yield* upkeep.pipe(on(noon + 401 * dayMillis))
      assert.include(yield* days, "20260310")
      yield* upkeep.pipe(on(noon + 402 * dayMillis))
      assert.notInclude(yield* days, "20260310")
      assert.strictEqual(yield* count("seen_ids"), 4)
      const again = yield* take(late.map((sourceId) => event(hook.accountId, { sourceId })))
      assert.strictEqual(again.duplicates, 4)
      const anew = yield* take(ids.map((sourceId) => event(hook.accountId, { sourceId }))).pipe(
        on(noon + 402 * dayMillis),
      )
      assert.deepStrictEqual([anew.deliveries, anew.duplicates], [4, 0])
      yield* upkeep.pipe(on(noon + 900 * dayMillis))
      assert.strictEqual(yield* count("seen_ids"), 0)
    }))
})
