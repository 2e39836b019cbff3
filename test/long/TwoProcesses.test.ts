/** Two processes on one database and one broker: shared work, one killed, one frozen and thawed. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import process from "node:process"
import { Database } from "../../services/platform/database/Database.ts"
import { until } from "../e2e/support/Until.ts"
import { fixture, type ProgramFixture } from "../e2e/support/ProgramFixture.ts"
import { unanswered } from "../support/Broker.ts"
import { keepFrozen } from "../support/Frozen.ts"
import { brisk, second } from "./support/Second.ts"
import { close, databaseOf, ended, inFlight, interrupted, type Traffic, traffic } from "./support/Traffic.ts"

/** Waits until every acknowledged message was handled and has ended. */
const settled = (fixture: ProgramFixture, flow: Traffic) =>
  Effect.gen(function* () {
    const url = Redacted.make(fixture.env["NATS_URL"]!)
    yield* until("every event answered for", Effect.delay(unanswered(url), "1 second"), (left) => left === 0)
    return yield* ended(flow)
  })

const frozen = Effect.fnUntraced(function* (around: ProgramFixture, flow: Traffic) {
  const { sql } = yield* Database
  const pid = around.instance.pid()
  yield* flow.publish(300)
  yield* until("some arrivals", Effect.sync(() => flow.target.hits.length), (n) => n > 30)
  yield* keepFrozen(pid)
  const flying = yield* inFlight
  assert.isAbove(flying.length, 0)
  yield* second(around)
  // The freeze is the thing under test: longer than every lease of the frozen process.
  yield* Effect.sleep("15 seconds")
  yield* interrupted(flying)
  process.kill(pid, "SIGCONT")
  yield* flow.publish(100)
  yield* settled(around, flow)
  yield* close(flow)
  const twice = yield* sql`
    select delivery_id, cycle, attempt from attempts where error is distinct from 'interrupted'
    group by 1, 2, 3 having count(*) > 1`
  assert.deepStrictEqual(twice, [])
}, Effect.scoped)

describe.concurrent("two processes", () => {
  it.live("on one database deliver everything and repeat nothing", () =>
    Effect.gen(function* () {
      const around = yield* fixture(brisk)
      const flow = yield* traffic(around)
      yield* second(around)
      for (let n = 0; n < 10; n++) yield* flow.publish(100)
      yield* settled(around, flow)
      yield* close(flow).pipe(Effect.provide(databaseOf(around)))
    }).pipe(Effect.scoped))

  it.live("of which one is killed and stays away complete its work by the other", () =>
    Effect.gen(function* () {
      const around = yield* fixture(brisk)
      const flow = yield* traffic(around)
      const other = yield* second(around)
      yield* flow.publish(200)
      yield* until("some arrivals", Effect.sync(() => flow.target.hits.length), (n) => n > 50)
      yield* other.end("SIGKILL")
      yield* flow.publish(200)
      yield* settled(around, flow)
      yield* close(flow).pipe(Effect.provide(databaseOf(around)))
    }).pipe(Effect.scoped))

  it.live("of which one freezes for 15 s with claims settle nothing stale after the thaw", () =>
    Effect.gen(function* () {
      const around = yield* fixture(brisk)
      const flow = yield* traffic(around)
      yield* frozen(around, flow).pipe(Effect.provide(databaseOf(around)))
    }).pipe(Effect.scoped))
})
