/**
 * The program is killed with SIGKILL at each failpoint and started again: events that the broker acknowledged arrive at
 * every subscription, only deliveries claimed at a kill may arrive twice, and every count is right in the end.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import type { DeliveryFault } from "../../services/platform/Failpoints.ts"
import { until } from "../e2e/support/Until.ts"
import { fixture, type ProgramFixture } from "../e2e/support/ProgramFixture.ts"
import { start } from "../support/Processes.ts"
import { unanswered } from "../support/Broker.ts"
import { brisk } from "./support/Second.ts"
import { close, databaseOf, ended, inFlight, interrupted, type Traffic, traffic } from "./support/Traffic.ts"

/** Each failpoint with a later hit: one process dies at its first hit, the next at the later one, the third lives. */
const points: Readonly<Record<DeliveryFault, number>> = {
  "intake.taken": 3,
  "intake.committed": 3,
  "intake.acknowledged": 3,
  "post.before": 77,
  "post.after": 77,
  "settle.before": 4,
  "settle.committed": 4,
  "scan.committed": 3,
  "scan.announced": 3,
  "dispatch.taken": 3,
  "dispatch.claimed": 3,
  "dispatch.acknowledged": 3,
  "relay.claimed": 2,
  "relay.published": 2,
  "relay.settled": 2,
}

const waves = 6
const wave = 30

/** One life under traffic, until its death at the Nth hit; returns the deliveries claimed at that moment. */
const life = Effect.fnUntraced(function* (around: ProgramFixture, flow: Traffic, point: string, hit: number) {
  const doomed = yield* start({
    module: "test/long/support/FaultMain.ts",
    env: { ...around.env, FAULT: `${point}:${hit}` },
  })
  let dead = false
  yield* Effect.forkScoped(Effect.tap(doomed.exited, () => Effect.sync(() => void (dead = true))))
  const heard = (what: string, good: () => boolean) => until(what, Effect.sync(() => dead || good()), (yes) => yes)
  for (let n = 1; n <= waves; n++) {
    const before = flow.target.hits.length
    yield* flow.publish(wave)
    yield* heard(`wave ${n}`, () => flow.target.hits.length > before + 10)
  }
  // The relay has work only once a delivery was tried eight times.
  const last = () => flow.target.at("/doomed").filter((hit) => hit.attempt === 8).length
  for (let n = 0; n < hit && point.startsWith("relay."); n++) {
    const before = last()
    yield* flow.publish(wave)
    yield* heard("a last attempt", () => last() > before)
  }
  yield* heard(`death at ${point}`, () => false)
  assert.isNull(yield* doomed.exited, "SIGKILL, nothing else")
  return yield* inFlight
}, Effect.scoped)

/** The lives of all these points on one database, one after another, and then one that lasts and closes the ledger. */
const killed = Effect.fnUntraced(function* (some: ReadonlyArray<readonly [string, number]>) {
  const around = yield* fixture(brisk)
  const flow = yield* traffic(around)
  yield* around.instance.end("SIGTERM")
  yield* Effect.gen(function* () {
    const claimed: Array<string> = []
    for (const [point, later] of some) {
      for (const hit of [1, later]) claimed.push(...yield* life(around, flow, point, hit))
    }
    yield* around.instance.start()
    yield* flow.publish(wave)
    if (some.some(([point]) => point.startsWith("intake."))) {
      const url = Redacted.make(around.env["NATS_URL"]!)
      yield* until(
        "every event answered for",
        Effect.delay(unanswered(url), "1 second"),
        (left) => left === 0,
      )
    }
    yield* ended(flow)
    yield* interrupted(claimed)
    yield* close(flow)
  }).pipe(Effect.provide(databaseOf(around)))
}, Effect.scoped)

const groups = Object.entries(Object.groupBy(Object.entries(points), ([point]) => point.split(".")[0]!))

describe.concurrent("killed", () => {
  for (const [name, some = []] of groups) {
    it.live(
      `at each ${name} the program loses no event: ${
        some.map(([point, later]) => `at the first ${point}, and again at hit ${later}`).join(", ")
      }`,
      () => killed(some),
      900_000,
    )
  }
})
