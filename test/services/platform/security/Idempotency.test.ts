import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer } from "effect"
import { Reactivity } from "effect/reactivity"
import { TestClock } from "effect/testing"
import { randomUUID } from "node:crypto"
import type { PendingReceipt } from "../../../../schemas/identity/PendingReceipt.ts"
import { NotFound } from "../../../../schemas/problems/HttpProblems.ts"
import { Audit } from "../../../../services/platform/observability/Audit.ts"
import { type AnswerForm, type Asked, Idempotency } from "../../../../services/platform/security/Idempotency.ts"
import { receiptFence } from "../../../../services/platform/security/ReceiptFence.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import { writeFenced } from "../../../../services/platform/database/FencedWrite.ts"
import { tagOf } from "../../../support/Fixtures.ts"
import { counting as statementsOf } from "../../../support/Statements.ts"
import { sizeOf } from "../../../support/SizeOf.ts"
import { TestDatabase } from "../../../support/TestDatabase.ts"
import { vault } from "../../../support/TestVault.ts"

const services = Layer.merge(Idempotency.layer, Audit.layer).pipe(
  Layer.provideMerge(vault),
  Layer.provideMerge(TestDatabase.layer),
)

const form: AnswerForm<{ readonly n: number }> = { status: 201, encode: (result) => JSON.stringify(result) }

const asked = (more: Partial<Asked> = {}): Asked => ({
  principal: `person:${randomUUID()}`,
  method: "POST",
  path: "/v1/things",
  key: randomUUID(),
  body: { name: "one" },
  ...more,
})

/** Counts its runs, in the database and in memory: a run that is rolled back counts in memory alone. */
const counting = Effect.gen(function* () {
  const { sql } = yield* Database
  const name = randomUUID()
  const runs = { tried: 0 }
  const command = Effect.gen(function* () {
    runs.tried++
    yield* sql`insert into rate_limits (key, hits, expires_at) values (${`${name}:${runs.tried}`}, '{}', 'infinity')`
    return { n: runs.tried }
  })
  const committed = Effect.map(
    sql<{ n: number }>`select count(*)::int as n from rate_limits where key like ${`${name}:%`}`,
    ([row]) => row!.n,
  )
  return { command, committed, runs }
})

layer(services, { excludeTestServices: true })("Idempotency", (it) => {
  it.effect("holds nothing of a key once no request with it is running, however the request ended", () =>
    Effect.gen(function* () {
      const { run } = yield* Idempotency
      const inFlight = sizeOf("idempotency keys in flight")
      const requests = Array.from({ length: 200 }, () => asked())
      const begun = yield* Deferred.make<void>()
      const endings = [Effect.succeed({ n: 1 }), Effect.fail(new NotFound({})), Effect.die("a defect")] as const
      const command = (n: number) => Effect.andThen(Deferred.await(begun), endings[n % endings.length]!)
      const fibers = yield* Effect.forEach(
        requests,
        (request, n) => Effect.forkChild(Effect.exit(run(request, form, command(n))), { startImmediately: true }),
      )
      assert.strictEqual(yield* inFlight, requests.length)
      yield* Effect.forEach(fibers.slice(100), (fiber) => Fiber.interrupt(fiber), { concurrency: "unbounded" })
      yield* Deferred.succeed(begun, undefined)
      yield* Effect.forEach(fibers, (fiber) => Fiber.await(fiber))
      assert.strictEqual(yield* inFlight, 0)
    }))

  it.effect("a repeated request is answered with the same bytes, and runs once", () =>
    Effect.gen(function* () {
      const { run } = yield* Idempotency
      const { command, committed } = yield* counting
      const request = asked()
      const first = yield* run(request, form, command)
      assert.deepStrictEqual(first, { status: 201, body: `{"n":1}`, replayed: false })
      // Members in another order are the same body.
      const again = yield* run({ ...request, body: { name: "one" } }, form, command)
      assert.deepStrictEqual(again, { ...first, replayed: true })
      assert.strictEqual(yield* committed, 1)
    }))

  it.effect("a repeated request asks other services once, and again only after a refusal", () =>
    Effect.gen(function* () {
      const { runAfter } = yield* Idempotency
      const { command, committed } = yield* counting
      const request = asked()
      const seen = { asked: 0 }
      const asking = (refused: boolean) =>
        Effect.suspend(() => {
          seen.asked++
          return refused ? Effect.fail(new NotFound({})) : Effect.succeed(command)
        })
      assert.strictEqual(yield* tagOf(runAfter(request, form, asking(true))), "NotFound")
      const all = yield* Effect.all(
        Array.from({ length: 5 }, () => runAfter(request, form, asking(false))),
        { concurrency: "unbounded" },
      )
      assert.deepStrictEqual(new Set(all.map(({ body }) => body)), new Set([`{"n":1}`]))
      assert.strictEqual(all.filter(({ replayed }) => !replayed).length, 1)
      assert.deepStrictEqual([seen.asked, yield* committed], [2, 1])
      const other = { ...request, body: { name: "two" } }
      assert.strictEqual(yield* tagOf(runAfter(other, form, asking(false))), "IdempotencyKeyReused")
      assert.isFalse((yield* runAfter({ ...request, key: null }, form, asking(false))).replayed)
      assert.deepStrictEqual([seen.asked, yield* committed], [3, 2])
    }))

  it.effect("a command that is handed on brings its receipt, and one that lost to another is answered as a repetition", () =>
    Effect.gen(function* () {
      const { handedOn } = yield* Idempotency
      const { sql } = yield* Database
      const handed = { status: 201, encode: (result: { readonly n: number }) => JSON.stringify(result) }
      const runs = { tried: 0 }
      const command = (receipt: PendingReceipt | null, n: number) =>
        Effect.gen(function* () {
          runs.tried++
          if (receipt === null) return { n }
          yield* writeFenced(sql, [receiptFence(sql, receipt, JSON.stringify({ n }), new Date(0))], Effect.void)
          return { n }
        }).pipe(Effect.orDie)
      const request = asked()
      const all = yield* Effect.all(
        Array.from({ length: 5 }, (_, n) => handedOn(request, handed, (receipt) => command(receipt, n))),
        { concurrency: "unbounded" },
      )
      assert.lengthOf(all.filter(({ replayed }) => !replayed), 1)
      assert.deepStrictEqual(new Set(all.map(({ body, status }) => `${status} ${body}`)).size, 1)
      assert.strictEqual(runs.tried, 1)
      const other = { ...request, body: { name: "two" } }
      assert.strictEqual(
        yield* tagOf(handedOn(other, handed, (receipt) => command(receipt, 7))),
        "IdempotencyKeyReused",
      )
      assert.deepStrictEqual(
        yield* handedOn({ ...request, key: null }, handed, (receipt) => command(receipt, 8)),
        { status: 201, body: `{"n":8}`, replayed: false },
      )

      // Another process is done between this one's look for a receipt and its command.
      const refused = new NotFound({})
      const lost = (first: Asked, n: number) =>
        handedOn(first, handed, (receipt) => Effect.andThen(command(receipt, n), Effect.fail(refused)))
      const raced = asked()
      assert.deepStrictEqual(yield* lost(raced, 9), { status: 201, body: `{"n":9}`, replayed: true })
      const refusedWithout = handedOn(asked(), handed, () => Effect.fail(refused))
      assert.strictEqual(yield* tagOf(refusedWithout), "NotFound")
    }))

  it.effect("a request differs by method, path, body, If-Match and portal binding", () =>
    Effect.gen(function* () {
      const { run } = yield* Idempotency
      const { command } = yield* counting
      const request = asked()
      yield* run(request, form, command)
      const others = [{ body: { name: "two" } }, { body: undefined }, { ifMatch: `"x"` }, { portalBinding: "x" }]
      for (const other of others) {
        assert.strictEqual(yield* tagOf(run({ ...request, ...other }, form, command)), "IdempotencyKeyReused")
      }
      // The same key with another principal, method or path is another key.
      for (const other of [{ principal: "person:other" }, { method: "PUT" }, { path: "/v1/others" }]) {
        assert.isFalse((yield* run({ ...request, ...other }, form, command)).replayed)
      }
    }))

  it.effect("a refused or rolled-back request leaves no receipt", () =>
    Effect.gen(function* () {
      const { run } = yield* Idempotency
      const { command, committed } = yield* counting
      const request = asked()
      const refused = Effect.andThen(command, Effect.fail(new NotFound()))
      assert.strictEqual(yield* tagOf(run(request, form, refused)), "NotFound")
      assert.strictEqual(yield* committed, 0)
      assert.isFalse((yield* run(request, form, command)).replayed)
      assert.strictEqual(yield* committed, 1)
    }))

  it.effect("fifty concurrent requests have one effect and one answer", () =>
    Effect.gen(function* () {
      const { run } = yield* Idempotency
      const { command, committed } = yield* counting
      const request = asked()
      // On a starved machine the first may outlast the others' wait: they get 409, and repeat.
      const coming = Effect.retry(run(request, form, command), {
        while: ({ _tag }) => _tag === "IdempotencyInProgress",
      })
      const all = yield* Effect.all(Array.from({ length: 50 }, () => coming), { concurrency: 50 })
      assert.deepStrictEqual(new Set(all.map(({ body }) => body)), new Set([`{"n":1}`]))
      assert.strictEqual(all.filter(({ replayed }) => !replayed).length, 1)
      assert.strictEqual(yield* committed, 1)
    }))

  it.effect("a request that another process is running is refused with a request to come back", () =>
    Effect.gen(function* () {
      const { run } = yield* Idempotency
      const { command, committed } = yield* counting
      const request = asked()
      const elsewhere = yield* Effect.provide(Idempotency, Idempotency.layer, { local: true })
      const inside = yield* Deferred.make<void>()
      const go = yield* Deferred.make<void>()
      const slow = Effect.andThen(
        command,
        (n) => Effect.as(Effect.andThen(Deferred.succeed(inside, undefined), Deferred.await(go)), n),
      )
      const first = yield* Effect.forkChild(run(request, form, slow))
      yield* Deferred.await(inside)
      const [other, own] = yield* Effect.all([
        tagOf(elsewhere.run(request, form, command)),
        tagOf(run(request, form, command)),
      ], { concurrency: 2 })
      assert.deepStrictEqual([other, own], ["IdempotencyInProgress", "IdempotencyInProgress"])
      yield* Deferred.succeed(go, undefined)
      assert.isFalse((yield* Fiber.join(first)).replayed)
      assert.isTrue((yield* elsewhere.run(request, form, command)).replayed)
      assert.strictEqual(yield* committed, 1)
    }))

  it.effect("the wait for a turn counts towards the wait for the row", () =>
    Effect.gen(function* () {
      const { url } = yield* TestDatabase
      const sql = yield* PgClient.make({ url, maxConnections: 8 }).pipe(Effect.provide(Reactivity.layer))
      const { reads } = yield* Database
      // The database has no lock timeout here: the process itself ends the wait.
      const patient = Layer.succeed(Database, {
        sql,
        reads,
        quick: sql,
        wide: sql,
        owner: sql,
        owns: Effect.succeed(true),
      })
      const process = Effect.map(
        Layer.build(Layer.fresh(Idempotency.layer).pipe(Layer.provide(patient))),
        Context.get(Idempotency),
      )
      const [here, elsewhere] = [yield* process, yield* process]
      const request = asked()
      const waits = Effect.repeat(
        reads<{ n: number }>`
          select count(*)::int as n from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock'`,
        { until: ([row]) => row!.n === 1 },
      )
      const done = yield* Deferred.make<void>()
      const begun = yield* Deferred.make<void>()
      const other = yield* Effect.forkChild(elsewhere.run(
        request,
        form,
        Effect.andThen(Deferred.succeed(begun, undefined), Effect.as(Deferred.await(done), { n: 1 })),
      ))
      yield* Deferred.await(begun)
      const first = yield* Effect.forkChild(here.run(request, form, Effect.succeed({ n: 3 })))
      yield* waits
      const own = yield* Effect.forkChild(tagOf(here.run(request, form, Effect.succeed({ n: 2 }))), {
        startImmediately: true,
      })
      yield* TestClock.adjust("1500 millis")
      // The request's turn comes: the one before it is interrupted.
      yield* Fiber.interrupt(first)
      yield* waits
      yield* TestClock.adjust("500 millis")
      assert.strictEqual(yield* Fiber.join(own), "IdempotencyInProgress")
      yield* Deferred.succeed(done, undefined)
      assert.isFalse((yield* Fiber.join(other)).replayed)
    }).pipe(Effect.scoped, Effect.provide(TestClock.layer())))

  it.effect("a receipt keeps less than the answer, where the endpoint says so", () =>
    Effect.gen(function* () {
      const { run } = yield* Idempotency
      const request = asked()
      const secret = Effect.succeed({ n: 42 })
      const once: AnswerForm<{ readonly n: number }> = { ...form, keep: () => `{"n":null}` }
      assert.strictEqual((yield* run(request, once, secret)).body, `{"n":42}`)
      assert.strictEqual((yield* run(request, once, secret)).body, `{"n":null}`)
    }))

  it.effect("the receipt is closed in one statement with the command's own rows", () =>
    Effect.gen(function* () {
      const { run } = yield* Idempotency
      const audit = yield* Audit
      const entry = { action: "thing.done", actor: null, subject: null, outcome: "done" as const }
      const request = asked()
      const command = Effect.as(audit.append(entry), { n: 1 })
      const [statements] = yield* statementsOf(run(request, form, command))
      assert.strictEqual(statements, 2)
      assert.isTrue((yield* run(request, form, command)).replayed)
    }))

  it.effect("a request without a key runs each time", () =>
    Effect.gen(function* () {
      const { run } = yield* Idempotency
      const { command, committed } = yield* counting
      yield* run(asked({ key: null }), form, command)
      yield* run(asked({ key: null }), form, command)
      assert.strictEqual(yield* committed, 2)
    }))
})
