/**
 * Three processes on one database and one broker, one killed every ten seconds while domains change hands and events
 * are delivered; they share actors, unless THREE_CLUSTER=off. At the end each transfer must have ended as planned,
 * once, and each delivery as its receiver recorded it.
 *
 * The test runs for THREE_SECONDS (120) and begins at most THREE_TRANSFERS (5,000) and THREE_DELIVERIES (50,000), as
 * many as the machine can carry; with THREE_WHOLE=on it runs until all are done. The last line has the numbers reached.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Redacted } from "effect"
import process from "node:process"
import { owner } from "../e2e/ClusterFixture.ts"
import type { ProgramInstance } from "../e2e/support/ProgramInstance.ts"
import { until } from "../e2e/support/Until.ts"
import { fixture } from "../e2e/support/ProgramFixture.ts"
import { unanswered } from "../support/Broker.ts"
import { brisk, second } from "./support/Second.ts"
import { close as closeDeliveries, databaseOf, ended, traffic } from "./support/Traffic.ts"
import { close as closeTransfers } from "./ThreeProcesses/ProcessLedger.ts"
import { endings, walks, windowMillis } from "./ThreeProcesses/ProcessWalks.ts"

const asked = (name: string, fallback: number) => Number(process.env[name] ?? fallback)

const transfers = asked("THREE_TRANSFERS", 5_000)
const deliveries = asked("THREE_DELIVERIES", 50_000)
const seconds = asked("THREE_SECONDS", 120)
const whole = process.env["THREE_WHOLE"] === "on"
const killEvery = 10_000

/** Of ten events nine go to /steady, five to /moody, one to /doomed. */
const events = Math.ceil(deliveries / 1.5)
const domainsEach = 25
const accounts = Math.max(3, Math.ceil(transfers / endings.length / domainsEach))

/** Starts as a supervisor does: a start that fails because the machine is busy is tried again. */
const started = (instance: ProgramInstance) =>
  Effect.suspend(() => instance.start()).pipe(Effect.catchDefect(Effect.fail), Effect.retry({ times: 3 }), Effect.orDie)

/** Kills each process in its turn, and starts it again, until the work is done. */
const killing = Effect.fnUntraced(function* (
  instances: ReadonlyArray<ProgramInstance>,
  up: Set<ProgramInstance>,
  over: () => boolean,
) {
  let kills = 0
  while (!over()) {
    const next = performance.now() + killEvery
    yield* Effect.sleep(killEvery / 2)
    const victim = instances[kills % instances.length]!
    // Requests in progress at this moment are cut off.
    yield* Effect.sync(() => up.delete(victim))
    yield* victim.end("SIGKILL")
    kills++
    yield* started(victim)
    up.add(victim)
    yield* Effect.sleep(Math.max(0, next - performance.now()))
  }
  return kills
})

const percentile = (times: ReadonlyArray<number>, share: number) =>
  Math.round([...times].sort((a, b) => a - b)[Math.floor(times.length * share)] ?? 0)

describe("three processes, one killed every ten seconds", () => {
  it.live("lose no transfer and no delivery, and repeat only interrupted deliveries", () =>
    Effect.gen(function* () {
      const around = yield* fixture({
        ...brisk,
        CLUSTER: process.env["THREE_CLUSTER"] ?? "on",
        INITIATE_TRANSFER_RATE: "10000",
        TRANSFER_SAFETY_WINDOW: `${windowMillis} millis`,
      })
      const flow = yield* traffic(around)
      const owners = yield* Effect.forEach(Array(accounts), () => owner(around, domainsEach), { concurrency: 4 })
      const instances = [around.instance, yield* second(around), yield* second(around)]
      const up = new Set(instances)

      const began = new Date()
      const begun = performance.now()
      const elapsed = () => performance.now() - begun
      const late = () => !whole && elapsed() > seconds * 1_000
      const moving = walks(up, 12, late)
      let work: "going on" | "done" | "failed" = "going on"
      const killer = yield* Effect.forkChild(
        killing(instances, up, () => work === "failed" || work === "done" && elapsed() > seconds * 1_000),
      )
      const publisher = yield* Effect.forkChild(Effect.gen(function* () {
        const each = 100
        for (let n = 0; n < events && !late(); n += each) {
          yield* flow.publish(Math.min(each, events - n))
          // Spread over the available time, and not far ahead of the deliveries.
          yield* Effect.sleep(Math.max(0, (n / events) * seconds * 900 - elapsed()))
          const ahead = Effect.sync(() =>
            1.5 * flow.acknowledged.length - new Set(flow.target.hits.map(({ id }) => id)).size
          )
          yield* until("deliveries", ahead, (n) => n < 3_000, 120)
        }
      }))
      const domains = owners.flatMap(({ domains }, n) => domains.map((domainId) => ({ domainId, n })))
      const walking = yield* Effect.exit(
        Effect.forEach(domains, ({ domainId, n }, place) => moving.walk(owners, n, domainId, place), {
          concurrency: 96,
          discard: true,
        }),
      )
      if (Exit.isSuccess(walking)) yield* Fiber.join(publisher)
      work = Exit.isSuccess(walking) ? "done" : "failed"
      const kills = yield* Fiber.join(killer)
      const ran = Math.round(elapsed() / 1_000)
      if (Exit.isFailure(walking)) {
        // Errors of the processes that are alive.
        const errors = instances.flatMap((one) => one.output().split("\n")).filter((line) =>
          /"level":"ERROR"/.test(line)
        )
        console.log(errors.slice(-20).join("\n"))
        return yield* walking
      }
      assert.isAbove(moving.transfers(), 0)
      assert.isAbove(kills, 1)

      const natsUrl = Redacted.make(around.env["NATS_URL"]!)
      yield* Effect.gen(function* () {
        const books = yield* closeTransfers(moving, natsUrl, began)
        yield* until("every event answered for", Effect.delay(unanswered(natsUrl), "1 second"), (n) => n === 0, 120)
        yield* ended(flow, 180)
        yield* closeDeliveries(flow)
        console.log(JSON.stringify({
          seconds: ran,
          kills,
          ...books,
          events: flow.acknowledged.length,
          posts: flow.target.hits.length,
          doubts: moving.doubts(),
          p50: percentile(moving.took, 0.5),
          p99: percentile(moving.took, 0.99),
        }))
      }).pipe(Effect.provide(databaseOf(around)))
    }).pipe(Effect.scoped), 900_000)
})
