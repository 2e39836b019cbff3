/**
 * Fenced writes on real PostgreSQL: all or nothing, in the order of their fences, and tried again after a lost race.
 */
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { randomUUID } from "node:crypto"
import { Database } from "../../../../services/platform/database/Database.ts"
import {
  BeforeWrite,
  held,
  holds,
  raised,
  repeated,
  writeFenced,
} from "../../../../services/platform/database/FencedWrite.ts"
import { afterCommit, Conflict, insertion, write } from "../../../../services/platform/database/UnitOfWork.ts"
import { TestDatabase } from "../../../support/TestDatabase.ts"

const setUp = Effect.gen(function* () {
  const { owner } = yield* Database
  yield* owner`create table rows (id uuid primary key, version bigint not null default 1, other bigint not null default 0)`
  yield* owner`create table notes (id uuid primary key, about uuid not null)`
  yield* owner`grant select, insert, update, delete on rows, notes to public`
})

const row = Effect.fnUntraced(function* () {
  const { sql } = yield* Database
  const id = randomUUID()
  yield* sql`insert into rows (id) values (${id}::uuid)`
  return id
})

const versionOf = Effect.fnUntraced(function* (id: string) {
  const { sql } = yield* Database
  const [found] = yield* sql<{ version: bigint; other: bigint; notes: number }>`
    select version, other, (select count(*)::int from notes where about = r.id) as notes from rows r where id = ${id}::uuid`
  return found!
})

/** Writes a note about a row, and records `about` after the commit. */
const note = Effect.fnUntraced(function* (about: string, notified: Array<string> = []) {
  const { sql } = yield* Database
  yield* write(sql, insertion(sql, "notes", { id: "uuid", about: "uuid" }), [{ id: randomUUID(), about }])
  yield* afterCommit(sql, Effect.sync(() => void notified.push(about)))
  return "noted" as const
})

/** Runs `effect` while a transaction holds the locks of `lock`, until `effect` waits for one or has ended. */
const whileHeld = Effect.fnUntraced(function* <A, E, R, E2, R2>(
  lock: Effect.Effect<unknown, E2, R2>,
  effect: Effect.Effect<A, E, R>,
) {
  const { sql, wide } = yield* Database
  const isHeld = yield* Deferred.make<void>()
  const fiber = yield* Effect.forkChild(Effect.andThen(Deferred.await(isHeld), effect))
  const waits = wide`select from pg_locks l join pg_stat_activity a on a.pid = l.pid
    where not l.granted and a.datname = current_database()`
  const seen = Effect.repeat(waits, { until: (rows) => rows.length > 0 || fiber.pollUnsafe() !== undefined })
  yield* sql.withTransaction(lock.pipe(Effect.andThen(Deferred.succeed(isHeld, undefined)), Effect.andThen(seen)))
  return yield* Fiber.join(fiber)
})

const ground = Layer.effectDiscard(setUp).pipe(Layer.provideMerge(Layer.fresh(TestDatabase.layer)))

layer(ground, { excludeTestServices: true })("FencedWrite", (it) => {
  it.effect("all gathered rows are written in one statement, and after-commit effects run after it", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const [one, two] = [yield* row(), yield* row()]
      const notified: Array<string> = []
      const early = Effect.sync(() => assert.deepStrictEqual(notified, []))
      const result = yield* writeFenced(
        sql,
        [held(sql, "rows", [{ id: one, version: 1 }]), raised(sql, "rows", "version", { id: two, version: 1 })],
        note(two, notified),
      ).pipe(Effect.provideService(BeforeWrite, early))
      assert.strictEqual(result, "noted")
      assert.deepStrictEqual({ ...(yield* versionOf(two)) }, { version: 2n, other: 0n, notes: 1 })
      assert.deepStrictEqual(notified, [two])
    }))

  it.effect("nothing is written and no after-commit effect runs if one fence is missed", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const [one, two] = [yield* row(), yield* row()]
      const notified: Array<string> = []
      const fences = {
        version: held(sql, "rows", [{ id: one, version: 2 }]),
        unknown: held(sql, "rows", [{ id: one, version: 1 }, { id: randomUUID(), version: 1 }]),
        raised: raised(sql, "rows", "version", { id: one, version: 7 }),
        also: raised(sql, "rows", "version", { id: one, version: 1 }, sql`other = 5`),
        condition: holds(sql, sql`exists (select from notes where about = ${one}::uuid)`),
      }
      for (const [name, missed] of Object.entries(fences)) {
        const kept = raised(sql, "rows", "version", { id: two, version: 1 })
        for (const all of [[missed, kept], [kept, missed]] as const) {
          const error = yield* Effect.flip(writeFenced(sql, all, note(two, notified)))
          assert.strictEqual(error.reason._tag, "SerializationError", name)
        }
      }
      assert.deepStrictEqual({ ...(yield* versionOf(two)) }, { version: 1n, other: 0n, notes: 0 })
      assert.deepStrictEqual({ ...(yield* versionOf(one)) }, { version: 1n, other: 0n, notes: 0 })
      assert.deepStrictEqual(notified, [])
    }))

  it.effect("a fence waits for a row that changes; a new version misses it, another column does not", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      for (const [column, expected] of [["version", "SerializationError"], ["other", "noted"]] as const) {
        for (
          const fence of [
            held,
            (...[s, table, [version]]: Parameters<typeof held>) => raised(s, table, "version", version!),
          ]
        ) {
          const id = yield* row()
          const writing = Effect.match(writeFenced(sql, [fence(sql, "rows", [{ id, version: 1 }])], note(id)), {
            onFailure: ({ reason }) => reason._tag,
            onSuccess: (done) => done,
          })
          const change = sql`update rows set ${sql(column)} = ${sql(column)} + 1 where id = ${id}::uuid`
          assert.strictEqual(yield* whileHeld(change, writing), expected)
        }
      }
    }))

  it.effect("a fence is not read before all earlier ones hold", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const [one, two] = [yield* row(), yield* row()]
      const [begun, ended] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const missed = raised(sql, "rows", "version", { id: one, version: 9 })
      const second = raised(sql, "rows", "version", { id: two, version: 1 })
      const refused = Effect.flip(writeFenced(sql, [missed, second], note(two)))
      // The lock is held until the write has ended: a write that waited for it would end in LockTimeoutError.
      const lock = Effect.andThen(
        sql`update rows set other = 1 where id = ${two}::uuid`,
        Deferred.succeed(begun, undefined),
      )
      const holding = yield* Effect.forkChild(sql.withTransaction(Effect.andThen(lock, Deferred.await(ended))))
      yield* Deferred.await(begun)
      assert.strictEqual((yield* refused).reason._tag, "SerializationError")
      yield* Deferred.succeed(ended, undefined)
      yield* Fiber.join(holding)
    }))

  it.effect("two writes on the same rows in opposite orders both end: the deadlock's victim is retried", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const ids = [yield* row(), yield* row()]
      for (let round = 0; round < 3; round++) {
        const both = [ids, ids.toReversed()].map((order) =>
          repeated(
            { turn: randomUUID(), finds: false },
            Effect.gen(function* () {
              const read = yield* sql<{ id: string; version: bigint }>`
                select id::text as id, version from rows where id = any(${order}::uuid[])`
              const [first, second] = order.map((id) =>
                raised(sql, "rows", "version", read.find((row) => row.id === id)!)
              )
              const slow = holds(sql, sql`(select pg_sleep(0.2)) is not null`)
              return yield* writeFenced(sql, [first!, slow, second!], note(order[0]!))
            }),
          )
        )
        assert.deepStrictEqual(yield* Effect.all(both, { concurrency: 2 }), ["noted", "noted"])
      }
      for (const id of ids) assert.deepStrictEqual({ ...(yield* versionOf(id)) }, { version: 7n, other: 0n, notes: 3 })
    }))

  it.effect("40 concurrent commands on one row all succeed: losers wait for their turn", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const id = yield* row()
      const one = repeated(
        { turn: id, finds: false },
        Effect.gen(function* () {
          const { version } = yield* versionOf(id)
          return yield* writeFenced(sql, [raised(sql, "rows", "version", { id, version })], note(id))
        }),
      )
      const all = yield* Effect.all(Array.from({ length: 40 }, () => one), { concurrency: "unbounded" })
      assert.strictEqual(all.length, 40)
      assert.deepStrictEqual({ ...(yield* versionOf(id)) }, { version: 41n, other: 0n, notes: 40 })
    }))

  it.effect("a race lost four times is a 503, and any other refusal is given at once", () =>
    Effect.gen(function* () {
      let tries = 0
      const losing = Effect.andThen(Effect.sync(() => void tries++), Effect.fail(new Conflict()))
      const error = yield* Effect.flip(repeated({ turn: "one", finds: false }, losing))
      assert.deepStrictEqual([tries, error._tag], [4, "DependencyUnavailable"])
      const refusing = Effect.andThen(Effect.sync(() => void tries++), Effect.fail("no" as const))
      assert.strictEqual(yield* Effect.flip(repeated({ turn: "one", finds: false }, refusing)), "no")
      assert.strictEqual(tries, 5)
    }))
})
