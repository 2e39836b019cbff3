/**
 * The only attempt of a delivery that succeeded at once is in the delivery's own row, which readers cannot notice. Each
 * history happens twice: as the program writes it now, and to a twin that after each step is rewritten as earlier
 * programs wrote it, with all attempts as rows. The reads of both must give the same text.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import type { AccountId, DeliveryId, WebhookId } from "../../../schemas/BrandedIds.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { DeliveryRecords } from "../../../services/webhooks/DeliveryRecords.ts"
import { Partitions } from "../../../services/webhooks/Partitions.ts"
import { Replays } from "../../../services/webhooks/Replays.ts"
import { releasedOf, type Result, type Task } from "../../../services/webhooks/Sender/Task.ts"
import { Settlement } from "../../../services/webhooks/Settlement.ts"
import {
  claimAll,
  count,
  dayMillis,
  event,
  failed,
  fixture,
  lease,
  miscounted,
  now,
  on,
  resultOf,
  session,
  settle,
  take,
  webhook,
} from "./WebhookFixture.ts"

type Step = "delivered" | "failed" | "released" | "interrupted" | "dead" | "replay"

/** The fifth interruption makes a dead letter. */
const doubtful: ReadonlyArray<Step> = Array(5).fill("interrupted")

const kinds: ReadonlyArray<ReadonlyArray<Step>> = [
  [],
  ["delivered"],
  ["released", "delivered"],
  ["failed"],
  ["failed", "delivered"],
  ["failed", "failed", "delivered", "replay", "delivered"],
  ["interrupted", "delivered"],
  ["interrupted", "failed", "delivered", "replay"],
  doubtful,
  ["delivered", "replay"],
  ["delivered", "replay", "delivered"],
  ["delivered", "replay", "released", "delivered"],
  ["delivered", "replay", "failed", "delivered", "replay", "delivered"],
  ["delivered", "replay", "interrupted", "delivered"],
  ["delivered", "replay", "interrupted", "failed", "dead"],
  ["delivered", "replay", "dead"],
  ["delivered", "replay", "dead", "replay", "delivered", "replay", "delivered"],
  ["dead"],
  ["dead", "replay", "delivered", "replay", "dead"],
]
const steps = Math.max(...kinds.map((kind) => kind.length))

/** Delays shorter than the wait between two steps. */
const schedule = { delays: Array.from({ length: 8 }, () => 60_000), jitter: 0.1 }

interface One {
  readonly id: DeliveryId
  readonly kind: ReadonlyArray<Step>
  task: Task | undefined
}

interface Side {
  readonly hook: { readonly id: WebhookId; readonly accountId: AccountId }
  readonly all: ReadonlyArray<One>
}

const side = Effect.gen(function* () {
  const hook = yield* webhook()
  const { tasks } = yield* take(kinds.map(() => event(hook.accountId)))
  return { hook, all: tasks.map((task, i): One => ({ id: task.deliveryId, kind: kinds[i]!, task })) }
})

/** Rewrites a history as earlier programs wrote it: all attempts as rows. */
const asBefore = Effect.fnUntraced(function* ({ hook }: Side) {
  const { owner } = yield* Database
  yield* owner`
    insert into attempts (delivery_id, cycle, attempt, claim, started_at, duration_ms, response_status)
    select id, 1, 1, 0, first_started_at, first_duration_ms, first_response_status from deliveries
    where webhook_id = ${hook.id}::uuid and first_started_at is not null`
  yield* owner`
    update deliveries set first_started_at = null, first_duration_ms = null, first_response_status = null
    where webhook_id = ${hook.id}::uuid`
})

const resultsOf = (which: "ended" | "fatal", some: ReadonlyArray<One>, n: number, at: number) =>
  some.flatMap(({ kind, task }, i): ReadonlyArray<Result> => {
    const step = kind[n]
    if (task === undefined || step === undefined || (step === "dead") !== (which === "fatal")) return []
    if (step === "delivered") return [resultOf(task, at + i, { durationMs: 10 + n, status: 200 + n })]
    if (step === "released") return [releasedOf(task)]
    if (step === "interrupted") return []
    return [failed(step === "dead" ? { ...task, attempt: 8 } : task, at + i)]
  })

const dying = Effect.fnUntraced(function* (some: ReadonlyArray<One>, n: number) {
  const { sql } = yield* Database
  for (const { id, kind, task } of some) {
    if (kind[n] !== "dead") continue
    yield* sql`update delivery_queue set attempt = 8 where delivery_id = ${id}::uuid`
    if (task!.attempt > 1) continue
    const day = new Date(yield* now)
    yield* sql`insert into delivery_counts (webhook_id, day, status, n)
      select ${task!.webhookId}::uuid, ${day}::timestamptz::date, status, n
      from (values ('pending', -1), ('retrying', 1)) c(status, n)`
    yield* sql`update deliveries set status = 'retrying' where id = ${id}::uuid`
  }
})

const step = Effect.fnUntraced(function* ({ all, hook }: Side, n: number) {
  const { sql } = yield* Database
  const at = yield* now
  const replayed = all.filter(({ kind }) => kind[n] === "replay").map(({ id }) => id)
  yield* (yield* Replays).again(hook.id, replayed).pipe(sql.withTransaction)
  yield* dying(all, n)
  yield* settle(resultsOf("ended", all, n, at))
  yield* settle(resultsOf("fatal", all, n, at))
})

/** Claims the deliveries that have a step `n`. */
const claimed = Effect.fnUntraced(function* ({ all }: Side, n: number) {
  const wanted = all.filter(({ kind }) => kind[n] !== undefined && kind[n] !== "replay")
  const tasks = new Map((yield* claimAll(wanted.map(({ id }) => id))).map((task) => [task.deliveryId, task]))
  for (const one of wanted) one.task = tasks.get(one.id) ?? one.task
})

/** All that reads return of a side's deliveries, with ids replaced by names. */
const readsOf = Effect.fnUntraced(function* ({ all, hook }: Side, left: ReadonlyArray<One> = all) {
  const records = yield* DeliveryRecords
  const texts = [yield* records.page(session(hook.accountId), hook.id, { page: 0, limit: 100 })]
  for (const status of ["delivered", "dead_letter", "retrying", "pending"]) {
    texts.push(yield* records.page(session(hook.accountId), hook.id, { page: 0, limit: 100, status }))
  }
  for (const { id } of left) texts.push(yield* records.get(hook.accountId, id))
  const { sql } = yield* Database
  const letters = yield* sql<{ text: string }>`
    select delivery_id::text || attempts::text as text from dead_letters
    where webhook_id = ${hook.id}::uuid order by delivery_id`
  return [...texts, ...letters.map(({ text }) => text)].map((text) =>
    all.reduce((text, { id }, i) => text.replaceAll(id, `delivery ${i}`), text.replaceAll(hook.id, "webhook"))
      .replaceAll(/\\?"email_id\\?":\\?"e\d+\\?"/g, "email_id").replaceAll(/"next_retry_at":"[^"]+"/g, "next_retry_at")
  )
})

/** The attempts as read by the statement of earlier programs, which wrote all of them as rows. */
const rowsOf = Effect.fnUntraced(function* (id: string) {
  const { sql } = yield* Database
  const [row] = yield* sql<{ attempts: string }>`
    select array_to_json(array(select row_to_json(v) from (
      select a.cycle, a.attempt, to_char(a.started_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as started_at,
        a.duration_ms, a.response_status, a.error
      from attempts a where a.delivery_id = ${id}::uuid order by a.cycle, a.started_at, a.claim
    ) v))::text as attempts`
  return JSON.parse(row!.attempts)
})

const alike = Effect.fnUntraced(function* (today: Side, before: Side, when: string) {
  assert.deepStrictEqual(yield* readsOf(today), yield* readsOf(before), when)
  assert.deepStrictEqual(yield* miscounted, [], when)
})

const both = Effect.gen(function* () {
  yield* (yield* Partitions).upkeep
  const sides = [yield* side, yield* side] as const
  const [today, before] = sides
  for (let n = 0; n < steps; n++) {
    for (const one of sides) yield* step(one, n)
    yield* asBefore(before)
    yield* alike(today, before, `after step ${n}`)
    yield* TestClock.adjust(lease + 1_000)
    yield* (yield* Settlement).free
    yield* asBefore(before)
    yield* alike(today, before, `after the leases of step ${n}`)
    for (const { id } of before.all) {
      const { attempts: all, status } = JSON.parse(yield* (yield* DeliveryRecords).get(before.hook.accountId, id))
      const attempts = all.map(({ request_headers: _, response_body: __, response_headers: ___, ...one }: {
        readonly [member: string]: unknown
      }) => one)
      if (status !== "dead_letter") assert.deepStrictEqual(attempts, yield* rowsOf(id), `after step ${n}`)
    }
    yield* TestClock.adjust("2 minutes")
    for (const one of sides) yield* claimed(one, n + 1)
  }
  return sides
})

layer(Layer.fresh(fixture({ schedule })))("First attempts", (it) => {
  it.effect("read as earlier programs wrote them, whatever follows, and after their day was dropped", () =>
    Effect.gen(function* () {
      const sides = yield* both
      const [today, before] = sides
      const { sql } = yield* Database
      const ends = yield* sql<{ status: string }>`
        select distinct status from deliveries where webhook_id = ${today.hook.id}::uuid`
      assert.sameMembers(ends.map(({ status }) => status), ["pending", "retrying", "delivered", "dead_letter"])

      // Their day is dropped. Dead letters stay, and replayed ones come back with all their attempts.
      yield* Effect.gen(function* () {
        yield* (yield* Settlement).free
        const { upkeep } = yield* Partitions
        yield* upkeep
        const letters = (some: Side) => some.all.filter(({ kind }) => kind.at(-1) === "dead" || kind === doubtful)
        for (const one of sides) {
          const dead = letters(one)
          const records = Effect.forEach(
            dead,
            ({ id }) => Effect.flatMap(DeliveryRecords, ({ get }) => get(one.hook.accountId, id)),
          )
          const attempts = (texts: ReadonlyArray<string>) => texts.map((text) => JSON.parse(text).attempts)
          const was = attempts(yield* records)
          const ids = dead.map(({ id }) => id)
          assert.strictEqual(yield* count("deliveries", `id = any('{${ids.join(",")}}'::uuid[])`), 0)
          yield* (yield* Replays).again(one.hook.id, ids).pipe(sql.withTransaction)
          assert.deepStrictEqual(attempts(yield* records), was)
          yield* settle((yield* claimAll(ids)).map((task) => resultOf(task, task.leaseUntil)))
          assert.deepStrictEqual(attempts(yield* records).map((all) => all.slice(0, -1)), was)
        }
        const of = (one: Side) => readsOf(one, letters(one))
        assert.deepStrictEqual(yield* of(today), yield* of(before))
      }).pipe(on((yield* now) + 40 * dayMillis))
    }))

  it.effect("have no row of their own if the delivery succeeded at once", () =>
    Effect.gen(function* () {
      const { accountId, id } = yield* webhook()
      const { tasks } = yield* take([event(accountId), event(accountId)])
      const at = yield* now
      yield* settle([resultOf(tasks[0]!, at), failed(tasks[1]!, at)])
      const own = `delivery_id in (select id from deliveries where webhook_id = '${id}')`
      assert.strictEqual(yield* count("attempts", own), 1)
      assert.strictEqual(yield* count("attempts", `delivery_id = '${tasks[1]!.deliveryId}'`), 1)
    }))
})
