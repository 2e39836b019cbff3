/**
 * The program is killed with SIGKILL at each moment of a transfer and of its mails and Slack messages, and started
 * again: people go on, and in the end every transfer has ended as planned, every mail has arrived, at most twice, and
 * no partial transition was ever visible.
 */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import type { ChannelFault, TransferFault, TransferStep } from "../../services/platform/Failpoints.ts"
import { fixture, type ProgramFixture } from "../e2e/support/ProgramFixture.ts"
import { start } from "../support/Processes.ts"
import { testSmtp } from "../support/TestSmtp.ts"
import { databaseOf } from "./support/Traffic.ts"
import { close, longAfter, muchLater, standing, whole } from "./support/TransferLedger.ts"
import { type Cast, cast } from "./support/Walks.ts"

/** Each failpoint with a number of hits: each step happens at least once in a life, messages more often. */
const points: Readonly<Record<TransferFault | ChannelFault, number>> = {
  ...Object.fromEntries(
    (["initiate", "accept", "decline", "cancel", "stop", "force", "clock"] as const).flatMap((step: TransferStep) => [
      [`transfer.${step}.written`, 1],
      [`transfer.${step}.committed`, 1],
    ]),
  ) as Record<TransferFault, number>,
  "timer.claimed": 1,
  "mail.claimed": 2,
  "mail.marked": 3,
  "mail.handed": 3,
  "mail.answered": 3,
  "mail.settled": 3,
  "slack.claimed": 2,
  "slack.answered": 3,
  "slack.settled": 3,
}

/** One life, until its death at the failpoint's Nth hit. */
const life = Effect.fnUntraced(function* (around: ProgramFixture, people: Cast, point: string, hits: number) {
  const doomed = yield* start({
    module: "test/long/support/FaultMain.ts",
    env: { ...around.env, FAULT: `${point}:${hits}` },
  })
  // It may be dead before it is ready.
  yield* Effect.match(doomed.line(/bailiwick ready on (http:\S+)/), {
    onFailure: () => {},
    onSuccess: ([, origin]) => people.moved(origin!),
  })
  const code = yield* Effect.timeoutOrElse(doomed.exited, {
    duration: "4 minutes",
    orElse: () =>
      Effect.flatMap(
        standing,
        (rows) =>
          Effect.die(new Error(`${point} was not reached:\n${doomed.output()}\n${JSON.stringify(rows, null, 1)}`)),
      ),
  })
  assert.isNull(code, `SIGKILL, nothing else:\n${doomed.output()}`)
  yield* whole
  yield* longAfter
}, Effect.scoped)

const killed = Effect.fnUntraced(function* (some: ReadonlyArray<readonly [string, number]>) {
  const smtp = yield* testSmtp()
  const around = yield* fixture({
    SMTP_URL: smtp.url,
    MAIL_FROM: "no-reply@mail.example",
    SLACK_HOSTS: "localhost",
    INITIATE_TRANSFER_RATE: "10000",
  })
  const people = yield* cast(around, smtp)
  yield* Effect.gen(function* () {
    const coming = yield* Effect.forEach(some, () => people.prepare)
    yield* around.instance.end("SIGKILL")
    const walks = []
    // A walk that cannot go on is reported first, not the waiters behind it.
    const stuck = yield* Deferred.make<never, unknown>()
    for (const [n, [point, hits]] of some.entries()) {
      // Each life has walks of its own, and unfinished ones of earlier lives.
      for (const walk of coming[n]!) {
        const going = people.walk(walk).pipe(Effect.tapCause((cause) => Deferred.failCause(stuck, cause)))
        walks.push(yield* Effect.forkScoped(going))
      }
      yield* Effect.raceFirst(life(around, people, point, hits), Deferred.await(stuck))
    }
    yield* around.instance.start()
    people.moved(around.instance.origin())
    yield* Effect.forkScoped(Effect.forever(Effect.delay(muchLater, "1 second")))
    const ended = yield* Effect.forEach(walks, Fiber.join)
    yield* Effect.forEach(ended, people.shown, { discard: true })
    yield* close(people, ended)
  }).pipe(Effect.provide(databaseOf(around)))
}, Effect.scoped)

const groups = Object.entries(
  Object.groupBy(Object.entries(points), ([point]) => point.split(".").at(point.startsWith("transfer.") ? -1 : 0)!),
)

describe.concurrent("a transfer's walk, killed", () => {
  for (const [name, some = []] of groups) {
    it.live(
      `at each ${name} it still ends as planned: ${some.map(([point]) => point).join(", ")}`,
      () => killed(some),
      900_000,
    )
  }
})
