/**
 * The pushing program is killed with SIGKILL at each failpoint, twice, and started again: a receiver gets every event,
 * by position, and again only events in flight or not settled.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import type { PushFault } from "../../services/platform/Failpoints.ts"
import { ServiceGrants } from "../../services/access/ServiceGrants.ts"
import { Database } from "../../services/platform/database/Database.ts"
import { until } from "../e2e/support/Until.ts"
import { TestBus } from "../support/TestBus.ts"
import { TestDatabase } from "../support/TestDatabase.ts"
import { home, start } from "../support/Processes.ts"
import { testKeys } from "../support/TestVault.ts"
import {
  type Answer,
  push,
  pushed,
  receiving,
  rowOf,
  stream,
  streaming,
  subjects,
  tellAll,
} from "../services/event-streams/StreamFixture.ts"
import { grant } from "../services/lifecycle/LifecycleFixture.ts"

/** Each failpoint with a later hit: one process dies at its first hit, the next at the later one, the third lives. */
const points: Readonly<Record<PushFault, number>> = { "push.before": 30, "push.after": 30, "push.settled": 3 }

const events = 400
/** The most messages that one life may have pushed without settling: a hundred, and the one in flight. */
const unsettled = 101

const environment = Effect.gen(function* () {
  const { ownerUrl, url: databaseUrl } = yield* TestDatabase
  const { url: natsUrl } = yield* TestBus
  return {
    BAILIWICK_HOME: yield* home,
    BAILIWICK_KEYS: testKeys,
    PORT: "0",
    DATABASE_URL: Redacted.value(databaseUrl),
    DATABASE_OWNER_URL: Redacted.value(ownerUrl),
    NATS_URL: Redacted.value(natsUrl),
    PUBLIC_URL: "https://id.example",
    ROLES: "lifecycle",
    WEBHOOKS_ALLOWED_CIDRS: "127.0.0.0/8",
    LOG_LEVEL: "warn",
  }
})

const killedAt = Effect.fnUntraced(function* (point: PushFault, later: number) {
  const env = yield* environment
  const here = yield* receiving
  const { arrivals, url } = yield* pushed()
  const streamId = yield* stream(here, push(url()))
  const told = [...(yield* tellAll(here, subjects(events)))]

  const life = Effect.fnUntraced(function* (hit: number) {
    const doomed = yield* start({
      module: "test/long/support/FaultMain.ts",
      env: { ...env, FAULT: `${point}:${hit}` },
    })
    assert.isNull(yield* doomed.exited, `SIGKILL, nothing else: ${doomed.output()}`)
    return arrivals.length
  }, Effect.scoped)

  const first = yield* life(1)
  const second = yield* life(later)
  yield* start({ env })
  told.push(...(yield* tellAll(here, subjects(20, "later"))))
  const all = new Set(told)
  yield* until(
    "everything",
    Effect.sync(() => new Set(arrivals.map(({ jti }) => jti))),
    ({ size }) => size === all.size,
  )
  yield* until("a settled stream", rowOf(streamId), ({ claim }) => claim === null)

  // Within one life the order is strict without repeats; a life begins at the last settled position.
  const lives = [arrivals.slice(0, first), arrivals.slice(first, second), arrivals.slice(second)]
  let begun = 0
  for (const life of lives) {
    const ids = life.map(({ jti }) => jti)
    const from = ids.length === 0 ? begun : told.indexOf(ids[0]!)
    assert.deepStrictEqual(ids, told.slice(from, from + ids.length))
    assert.isAtMost(from, begun)
    assert.isAtMost(begun - from, unsettled)
    begun = Math.max(begun, from + ids.length)
  }
  assert.strictEqual(begun, told.length)
}, Effect.scoped)

/** A decision whose pushes are refused, by processes that die between an answer and its record. */
const refusedAndKilled = Effect.gen(function* () {
  const env = yield* environment
  const { sql } = yield* Database
  const here = yield* receiving
  let answer: Answer = 500
  const { arrivals, url } = yield* pushed(() => answer)
  yield* stream(here, push(url()))
  yield* grant(here, "shop", ["events.read"])
  const delivery = Effect.gen(function* () {
    const about = { personId: here.owner, projectId: here.project, limit: 100, afterId: null }
    const grants = yield* (yield* ServiceGrants).list(about)
    return grants.find(({ service_id }) => service_id === "shop")!.delivery
  })
  /** A process that dies at its nth answer; its claim is freed at once. */
  const life = Effect.fnUntraced(function* (nth: number) {
    const doomed = yield* start({
      module: "test/long/support/FaultMain.ts",
      env: { ...env, FAULT: `push.after:${nth}` },
    })
    assert.isNull(yield* doomed.exited, `SIGKILL, nothing else: ${doomed.output()}`)
    yield* sql`update lifecycle_streams set lease_until = now() - interval '1 second' where claim is not null`
    return yield* delivery
  }, Effect.scoped)

  const first = yield* life(1)
  assert.deepInclude(first, { state: "queued", attempts: 0, last_attempt_at: null })
  assert.lengthOf(arrivals, 1)
  const second = yield* life(3)
  assert.deepInclude(second, { state: "failed", attempts: 2 })
  assert.lengthOf(arrivals, 4)
  answer = 202
  yield* start({ env })
  const taken = yield* until("delivered", delivery, ({ state }) => state === "delivered")
  // Of five pushes the two unrecorded ones are not counted.
  assert.deepStrictEqual([arrivals.length, taken.attempts], [5, 3])
  const rows = yield* sql`select attempts, outcome from lifecycle_attempts where project_id = ${here.project}`
  assert.deepStrictEqual(rows, [{ attempts: 2, outcome: "taken" }])
}).pipe(Effect.scoped)

describe.concurrent("a killed pusher", () => {
  it.live(
    "between an answer and its record counts each recorded attempt once",
    () => refusedAndKilled.pipe(Effect.provide(streaming())),
    900_000,
  )

  for (const [point, later] of Object.entries(points)) {
    it.live(
      `at the first ${point}, and again at hit ${later}, loses no event and keeps the order`,
      () => killedAt(point as PushFault, later).pipe(Effect.provide(streaming())),
      900_000,
    )
  }
})
