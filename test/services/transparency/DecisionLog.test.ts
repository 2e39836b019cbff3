/**
 * The log over random histories: decisions, sequencers of several processes at once, and a broker. Each served
 * checkpoint continues the one before and equals the naive tree of all entries, with each decision once.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import fc from "fast-check"
import { verifyCheckpoint, verifyConsistency } from "../../../sdk/TransparencyLog.ts"
import { DecisionLog, logStatus } from "../../../services/transparency/DecisionLog.ts"
import { addLogKey, knowsTwoKeys, retireLogKey } from "../../../services/transparency/RotateLogKey.ts"
import { Bus, BusError } from "../../../services/platform/messaging/Bus.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { refusalOf, schemaVersion } from "../../../services/platform/database/VersionFence.ts"
import {
  decide,
  decisionLog,
  entries,
  head,
  origin,
  policy,
  published,
  served,
  settled,
  waiting,
} from "./DecisionLogFixture.ts"
import { proofOf, rootOf } from "./NaiveTree.ts"

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex")

type Step = { readonly do: "decide"; readonly count: number } | { readonly do: "advance"; readonly processes: number }

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constant("decide" as const), count: fc.integer({ min: 1, max: 60 }) }),
  fc.record({ do: fc.constant("advance" as const), processes: fc.integer({ min: 1, max: 3 }) }),
)

layer(decisionLog, { excludeTestServices: true, timeout: "1 minute" })("DecisionLog", (it) => {
  it.effect("begins empty, and says so on the broker before anything is integrated", () =>
    Effect.gen(function* () {
      const ids = yield* decide(3)
      const { advance } = yield* DecisionLog
      yield* advance
      assert.deepStrictEqual(yield* entries, [])
      yield* settled
      assert.deepStrictEqual((yield* entries).map(({ record_id }) => record_id), [...ids].sort())
      assert.strictEqual(yield* waiting, 0)
      assert.deepStrictEqual(yield* logStatus, { size: 3, published: 3, held: null, waitingSince: null })
    }))

  it.effect(
    "every decision is an entry once, and every checkpoint continues the one before",
    () =>
      Effect.gen(function* () {
        const { advance } = yield* DecisionLog
        const histories = fc.sample(fc.array(step, { minLength: 4, maxLength: 14 }), { numRuns: 8, seed: 18 })
        let before = yield* served
        let decided = before.size
        for (const each of histories.flat()) {
          if (each.do === "decide") decided += (yield* decide(each.count)).length
          else {
            yield* Effect.all(Array.from({ length: each.processes }, () => advance), { concurrency: "unbounded" })
            const after = yield* served
            const all = (yield* entries).map(({ digest }) => digest)
            verifyConsistency(before, after, proofOf(before.size, all.slice(0, after.size)))
            assert.strictEqual(hex(after.root), hex(rootOf(all.slice(0, after.size))))
            before = after
          }
        }
        yield* settled
        const all = yield* entries
        assert.isAbove(decided, 800)
        assert.deepStrictEqual(all.map(({ index }) => index), all.map((_, i) => i))
        assert.strictEqual(all.length, decided)
        assert.strictEqual(new Set(all.map(({ record_id }) => record_id)).size, decided)
        const { sql } = yield* Database
        assert.lengthOf(
          yield* sql`select id from audit_records where action = 'service-grant.approved'
          and not exists (select from log_entries e where e.record_id = audit_records.id)`,
          0,
        )
        assert.strictEqual((yield* served).size, decided)
      }),
    120_000,
  )

  it.effect("the broker has every checkpoint, with all entries in their order", () =>
    Effect.gen(function* () {
      const messages = yield* published
      const told = messages.flatMap(({ entries, first, size }) => {
        assert.strictEqual(first + entries.length, size)
        return entries.map((entry, i) => [first + i, entry] as const)
      })
      const all = yield* entries
      assert.deepStrictEqual(
        [...new Map(told)],
        all.map(({ digest, index }) => [index, Buffer.from(digest).toString("base64")] as const),
      )
      assert.strictEqual(messages.at(-1)!.checkpoint, (yield* head).checkpoint)
    }))

  it.effect("a checkpoint whose answer was lost is published once more, and nothing is held", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      yield* decide(5)
      yield* settled
      const before = yield* served
      // As a process that died after the broker's answer leaves it.
      yield* sql`
        update log_head set published_size = size - 5, published_seq = published_seq - 1, published_at = null`
      yield* settled
      assert.deepStrictEqual(yield* served, before)
      assert.isNull((yield* head).held_reason)
    }))

  it.effect("a broker that lost the log gets its checkpoint again", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      yield* decide(2)
      yield* settled
      const before = yield* served
      // As if the broker's last message had another sequence, for instance of a stream that was made anew.
      yield* sql`update log_head set published_seq = published_seq + 1000`
      yield* decide(1)
      yield* settled
      assert.strictEqual((yield* served).size, before.size + 1)
      assert.isNull((yield* head).held_reason)
    }))

  it.effect("is served no further than the broker has it", () =>
    Effect.gen(function* () {
      const bus = yield* Bus
      const before = yield* served
      const ids = yield* decide(1)
      const gone = new BusError({ reason: "unavailable", detail: "gone" })
      const without = Layer.succeed(Bus, { ...bus, publish: () => Effect.fail(gone) })
      const failed = yield* Effect.flatMap(DecisionLog, ({ advance }) => advance).pipe(
        Effect.provide(Layer.fresh(DecisionLog.layer(origin)).pipe(Layer.provide(without))),
        Effect.flip,
      )
      assert.strictEqual(failed, gone)
      assert.strictEqual((yield* entries).at(-1)!.record_id, ids[0])
      assert.deepStrictEqual(yield* served, before)
      yield* settled
      assert.strictEqual((yield* served).size, before.size + 1)
    }))

  it.effect("while its key is replaced both sign, and a verifier who knows either accepts the checkpoint", () =>
    Effect.gen(function* () {
      const { owner, sql } = yield* Database
      const [add, retire] = [yield* addLogKey(0), yield* retireLogKey]
      const keysOf = Effect.map(policy, ({ logKeys }) => logKeys)
      const [first] = yield* keysOf
      assert.strictEqual(yield* retire(first!, "too early"), "the log's only key: add another one first")
      const { size } = yield* served
      const database = yield* Database
      const notOwner = Database.of({ ...database, owns: Effect.succeed(false) })
      const refused = yield* Effect.flatMap(
        Effect.provideService(addLogKey(0), Database, notOwner),
        (one) => one("mine"),
      )
      assert.match(String(refused.fault), /DATABASE_OWNER_URL/)
      // A program that knows one key works on the schema until there is a second one, and then no more.
      const refusals = Effect.map(
        schemaVersion,
        (found) =>
          [knowsTwoKeys - 1, knowsTwoKeys].map((program) =>
            refusalOf(program, { ...found, applied: program }) !== null
          ),
      )
      assert.deepStrictEqual(yield* refusals, [false, false])
      const { key: second } = yield* add("the first one was seen on a screen")
      assert.deepStrictEqual(yield* refusals, [true, false])
      assert.isNull((yield* add("a third one")).key)
      yield* settled
      const verifiedBy = (key: string) =>
        Effect.map(head, ({ checkpoint }) => verifyCheckpoint(checkpoint!, { origin, logKeys: [key] }).size)
      assert.deepStrictEqual([yield* verifiedBy(first!), yield* verifiedBy(second!)], [size + 1, size + 1])
      assert.strictEqual(
        yield* retire("log.example.org/log+00000000+A", "unknown"),
        "not a key that signs the log's checkpoints",
      )
      assert.isNull(yield* retire(first!, "all readers have the second one"))
      yield* settled
      assert.strictEqual(yield* verifiedBy(second!), size + 2)
      const { checkpoint } = yield* head
      assert.throws(() => verifyCheckpoint(checkpoint!, { origin, logKeys: [first!] }), /kid/)
      const [row] = yield* sql<{ length: number }>`
        select length(private_key) as length from log_keys where verifier_key = ${first!}`
      assert.strictEqual(row!.length, 0, "the retired key's private half is gone")
      // What the retired key has signed stays the log's, also for a database of before.
      yield* owner`update log_head set confirmed_epoch = null, published_seq = 0`
      yield* settled
      assert.isNull((yield* head).held_reason)
    }))
})
