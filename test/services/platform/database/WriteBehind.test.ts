import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer, Queue, Scope } from "effect"
import { TestClock } from "effect/testing"
import { Database } from "../../../../services/platform/database/Database.ts"
import { writeBehind, type WriteBehindOptions } from "../../../../services/platform/database/WriteBehind.ts"
import { sizeOf } from "../../../support/SizeOf.ts"
import { TestDatabase } from "../../../support/TestDatabase.ts"

type Options = WriteBehindOptions<string, number, unknown>

/** A table of its own, and a write that replaces its rows and says which keys it wrote. */
const target = Effect.fnUntraced(function* (name: string) {
  const { owner, sql } = yield* Database
  yield* owner`create table ${owner(name)} (key text primary key, value integer not null)`
  yield* owner`grant all on ${owner(name)} to public`
  const batches = yield* Queue.unbounded<ReadonlyArray<string>>()
  const write = (entries: ReadonlyMap<string, number>) => {
    const rows = JSON.stringify([...entries].map(([key, value]) => ({ key, value })))
    return sql`
      insert into ${sql(name)} select key, value from json_to_recordset(${rows}::json) r(key text, value integer)
      on conflict (key) do update set value = excluded.value`.pipe(
      Effect.andThen(Queue.offer(batches, [...entries.keys()])),
    )
  }
  const rows = Effect.map(
    sql<{ key: string; value: number }>`select key, value from ${sql(name)} order by key`,
    (found) => Object.fromEntries(found.map(({ key, value }) => [key, value])),
  )
  return { batches, rows, options: { name, most: 100, write } satisfies Options }
})

/** A write that waits until it is let go, each time. */
const held = Effect.gen(function* () {
  const begun = yield* Queue.unbounded<ReadonlyMap<string, number>>()
  const permits = yield* Queue.unbounded<Exit.Exit<void, string>>()
  const write = (entries: ReadonlyMap<string, number>) =>
    Queue.offer(begun, entries).pipe(Effect.andThen(Queue.take(permits)), Effect.flatten)
  return { begun, letGo: (exit: Exit.Exit<void, string> = Exit.void) => Queue.offer(permits, exit), write }
})

layer(TestDatabase.layer, { excludeTestServices: true })("writing behind", (it) => {
  it.effect("entries are written every ten seconds, many in one statement, the later value of a key", () =>
    Effect.gen(function* () {
      const { batches, options, rows } = yield* target("regular")
      const behind = yield* writeBehind(options)
      behind.note("a", 1)
      behind.note("b", 2)
      behind.note("a", 3)
      assert.strictEqual(yield* sizeOf("regular"), 2)
      yield* TestClock.adjust("9999 millis")
      assert.deepStrictEqual(yield* rows, {})
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(yield* Queue.take(batches), ["b", "a"])
      assert.deepStrictEqual(yield* rows, { a: 3, b: 2 })
      behind.note("c", 4)
      yield* behind.flush
      yield* behind.flush
      assert.deepStrictEqual(yield* Queue.clear(batches), [["c"]])
      assert.deepStrictEqual(yield* rows, { a: 3, b: 2, c: 4 })
    }).pipe(Effect.scoped, Effect.provide(TestClock.layer())))

  it.effect("an entry that PostgreSQL refuses is dropped by itself; the others are written", () =>
    Effect.gen(function* () {
      const { options, rows } = yield* target("refusing")
      const dropped: Array<number> = []
      const behind = yield* writeBehind({ ...options, dropped: (value) => dropped.push(value) })
      // PostgreSQL's text has no NUL.
      const keys = ["a", "b", "c\0", "d", "e\0", "f", "g"]
      keys.forEach((key, n) => behind.note(key, n))
      yield* behind.flush
      assert.deepStrictEqual(yield* rows, { a: 0, b: 1, d: 3, f: 5, g: 6 })
      assert.deepStrictEqual(dropped, [2, 4])
      assert.strictEqual(yield* sizeOf("refusing"), 0)
    }).pipe(Effect.scoped, Effect.provide(TestClock.layer())))

  it.effect("what could not be written stays noted, joined with what came later, and is tried again", () =>
    Effect.gen(function* () {
      const { owner } = yield* Database
      const { batches, options, rows } = yield* target("failing")
      const behind = yield* writeBehind({ ...options, joined: (before, next) => before + next })
      behind.note("a", 1)
      behind.note("b", 10)
      yield* owner`alter table failing rename to failing_away`
      yield* behind.flush
      behind.note("a", 2)
      yield* behind.flush
      assert.strictEqual(yield* sizeOf("failing"), 2)
      yield* owner`alter table failing_away rename to failing`
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(yield* Queue.take(batches), ["b", "a"])
      assert.deepStrictEqual(yield* rows, { a: 3, b: 10 })
    }).pipe(Effect.scoped, Effect.provide(TestClock.layer())))

  it.effect("what is noted during a write is joined with what the write could not write", () =>
    Effect.gen(function* () {
      const { begun, letGo, write } = yield* held
      const behind = yield* writeBehind({
        name: "during",
        most: 100,
        write,
        joined: (before: number, next: number) => before * 10 + next,
      })
      behind.note("a", 1)
      const flush = yield* Effect.forkChild(behind.flush)
      assert.deepStrictEqual([...yield* Queue.take(begun)], [["a", 1]])
      behind.note("a", 2)
      behind.note("b", 3)
      yield* letGo(Exit.fail("not now"))
      yield* Fiber.join(flush)
      const again = yield* Effect.forkChild(behind.flush)
      assert.deepStrictEqual([...yield* Queue.take(begun)], [["a", 12], ["b", 3]])
      yield* letGo()
      yield* Fiber.join(again)
      assert.strictEqual(yield* sizeOf("during"), 0)
    }).pipe(Effect.scoped))

  it.effect("at most so many entries wait; the one noted longest ago is dropped, and said", () =>
    Effect.gen(function* () {
      const { options, rows } = yield* target("bounded")
      const dropped: Array<number> = []
      const behind = yield* writeBehind({ ...options, most: 3, dropped: (value) => dropped.push(value) })
      for (const [n, key] of ["a", "b", "c", "a", "d", "e"].entries()) behind.note(key, n)
      assert.strictEqual(yield* sizeOf("bounded"), 3)
      yield* behind.flush
      assert.deepStrictEqual(yield* rows, { a: 3, d: 4, e: 5 })
      assert.deepStrictEqual(dropped, [1, 2])
    }).pipe(Effect.scoped))

  it.effect("a wanted value is written at once, after a write under way; others are not", () =>
    Effect.gen(function* () {
      const { begun, letGo, write } = yield* held
      const behind = yield* writeBehind({ name: "wanted", most: 100, write })
      behind.note("a", 1)
      yield* behind.flushWanted((value) => value === 2)
      assert.strictEqual(yield* sizeOf("wanted"), 1)
      const flush = yield* Effect.forkChild(behind.flush)
      yield* Queue.take(begun)
      behind.note("b", 2)
      const wanted = yield* Effect.forkChild(behind.flushWanted((value) => value === 2))
      yield* Effect.yieldNow
      assert.isUndefined(wanted.pollUnsafe())
      yield* letGo()
      assert.deepStrictEqual([...yield* Queue.take(begun)], [["b", 2]])
      yield* letGo()
      yield* Fiber.join(wanted)
      yield* Fiber.join(flush)
    }).pipe(Effect.scoped))

  it.effect("a request that is cancelled while it flushes loses no entry", () =>
    Effect.gen(function* () {
      const { begun, letGo, write } = yield* held
      const behind = yield* writeBehind({ name: "cancelled", most: 100, write })
      behind.note("a", 1)
      // A write that is not awaited at this moment is cut off, and tried again.
      const flush = yield* Effect.forkChild(behind.flush)
      yield* Queue.take(begun)
      yield* Fiber.interrupt(flush)
      assert.strictEqual(yield* sizeOf("cancelled"), 1)
      // A write for a reader goes on: others may wait for it as well.
      const wanted = yield* Effect.forkChild(behind.flushWanted(() => true))
      assert.deepStrictEqual([...yield* Queue.take(begun)], [["a", 1]])
      const gone = yield* Effect.forkChild(Fiber.interrupt(wanted))
      yield* letGo()
      yield* Fiber.join(gone)
      assert.strictEqual(yield* sizeOf("cancelled"), 0)
    }).pipe(Effect.scoped))

  it.effect("the end of the scope writes what is noted, before the database's pools end", () =>
    Effect.gen(function* () {
      const own = yield* TestDatabase
      const { options, rows } = yield* target("last")
      const ending = yield* Scope.make()
      // A pool that has opened no connection yet.
      const database = Database.layer({ url: own.url, ownerUrl: null, maxConnections: 1 })
      const writing = Layer.effectDiscard(Effect.gen(function* () {
        const { sql } = yield* Database
        const behind = yield* writeBehind({
          ...options,
          write: (entries) =>
            Effect.forEach(entries, ([key, value]) => sql`insert into last values (${key}, ${value})`),
        })
        behind.note("a", 1)
      }))
      yield* Layer.buildWithScope(Layer.provide(writing, database), ending)
      assert.deepStrictEqual(yield* rows, {})
      yield* Scope.close(ending, Exit.void)
      assert.deepStrictEqual(yield* rows, { a: 1 })
    }))

  it.effect("the last write is given up after five seconds", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const ending = yield* Scope.make()
      const behind = yield* Scope.provide(
        writeBehind({
          name: "stuck",
          most: 100,
          write: (_: ReadonlyMap<string, number>) => Effect.andThen(Deferred.succeed(begun, undefined), Effect.never),
        }),
        ending,
      )
      behind.note("a", 1)
      const closed = yield* Effect.forkChild(Scope.close(ending, Exit.void))
      yield* Deferred.await(begun)
      yield* TestClock.adjust("4999 millis")
      assert.isUndefined(closed.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      yield* Fiber.join(closed)
    }).pipe(Effect.provide(TestClock.layer())))
})
