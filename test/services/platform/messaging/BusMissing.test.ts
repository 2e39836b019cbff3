/**
 * Absent messages of a stream that count as lost. Decisions of the lost time have to be seen before an installation
 * opens, so only two absences are no loss: messages beyond the age for which the program itself keeps a stream and, on
 * DIRECTORY, whose messages each hold the whole state of their subject's object, those replaced by a newer one of their
 * subject. Messages removed by any other limit, set from outside, are missing.
 */
import { assert, describe, it } from "@effect/vitest"
import { DiscardPolicy, jetstreamManager, type StreamConfig } from "@nats-io/jetstream"
import { connect, nanos } from "@nats-io/transport-node"
import { Effect, Redacted, type Scope } from "effect"
import { TestClock } from "effect/testing"
import type { StreamName } from "../../../../schemas/bus/BusStreams.ts"
import { Bus } from "../../../../services/platform/messaging/Bus.ts"
import { day } from "../../../support/Fixtures.ts"
import { until } from "../../../e2e/support/Until.ts"
import { TestBus } from "../../../support/TestBus.ts"

const manager = (url: Redacted.Redacted) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(() => {
        const { host, password, username } = new URL(Redacted.value(url))
        return connect({ servers: host, user: username, pass: password })
      }),
      (nc) => Effect.promise(() => nc.close()),
    ),
    (nc) => Effect.promise(() => jetstreamManager(nc)),
  ).pipe(Effect.flatten)

type Manager = Effect.Success<ReturnType<typeof manager>>

const onOwn = <A, E>(use: (jsm: Manager) => Effect.Effect<A, E, Bus | Scope.Scope>) =>
  Effect.gen(function* () {
    const { url } = yield* TestBus.make
    const jsm = yield* manager(url)
    return yield* Effect.provide(use(jsm), Bus.layer({ url }))
  }).pipe(Effect.scoped)

const say = (...subjects: ReadonlyArray<string>) =>
  Effect.flatMap(Bus, (bus) => Effect.forEach(subjects, (subject) => Effect.eventually(bus.publish(subject, "{}"))))

const limit = (jsm: Manager, stream: StreamName, to: Partial<StreamConfig>) =>
  Effect.promise(() => jsm.streams.update(stream, to))

const missing = (stream: StreamName, after: number, later = 0) =>
  Effect.gen(function* () {
    const bus = yield* Bus
    const since = Date.now() - 1_000
    yield* TestClock.setTime(Date.now() + later)
    return yield* bus.missing(stream, after, since)
  }).pipe(Effect.provide(TestClock.layer()))

const held = (jsm: Manager, stream: StreamName, messages: number) =>
  until(
    `${messages} messages`,
    Effect.promise(() => jsm.streams.info(stream)),
    ({ state }) => state.messages === messages,
  )

describe("a message absent from a stream", () => {
  for (const stream of ["LIFECYCLE", "TRANSFERS", "DIRECTORY"] as const) {
    const subject = `${stream.toLowerCase()}.v1.one`

    it.live(`${stream}: is missing where a shorter age limit than ours removed it, and not where ours would have`, () =>
      onOwn((jsm) =>
        Effect.gen(function* () {
          yield* say(`${subject}.a`, `${subject}.b`, `${subject}.c`)
          assert.deepStrictEqual(yield* missing(stream, 1), [])
          yield* limit(jsm, stream, { max_age: nanos(200), duplicate_window: nanos(200) })
          yield* held(jsm, stream, 0)
          assert.deepStrictEqual(yield* missing(stream, 1), [{ first: 2, last: 3 }])
          const ours = stream === "DIRECTORY" ? 30 * day : 90 * day
          assert.deepStrictEqual(yield* missing(stream, 1, ours - day), [{ first: 2, last: 3 }])
          assert.deepStrictEqual(yield* missing(stream, 1, ours + day), [])
        })
      ))

    it.live(`${stream}: is missing where a limit on the number of messages removed it`, () =>
      onOwn((jsm) =>
        Effect.gen(function* () {
          yield* say(`${subject}.a`)
          yield* limit(jsm, stream, { max_msgs: 2, discard: DiscardPolicy.Old })
          yield* say(`${subject}.b`, `${subject}.c`, `${subject}.d`)
          assert.deepStrictEqual(yield* missing(stream, 0), [{ first: 1, last: 2 }])
          assert.deepStrictEqual(yield* missing(stream, 2), [])
        })
      ))

    it.live(`${stream}: is ${stream === "DIRECTORY" ? "not " : ""}missing where a newer one of its subject replaced it`, () =>
      onOwn((jsm) =>
        Effect.gen(function* () {
          const whole = stream === "DIRECTORY"
          yield* say(`${subject}.a`)
          yield* limit(jsm, stream, { max_msgs_per_subject: 1 })
          yield* say(`${subject}.b`, `${subject}.b`, `${subject}.c`)
          assert.deepStrictEqual(yield* missing(stream, 0), whole ? [] : [{ first: 2, last: 2 }])
          yield* say(`${subject}.a`)
          assert.deepStrictEqual(yield* missing(stream, 0), whole ? [] : [{ first: 1, last: 2 }])
          // The newest message has no replacement.
          yield* Effect.promise(() => jsm.streams.deleteMessage(stream, 5))
          assert.deepStrictEqual((yield* missing(stream, 0)).at(-1), { first: 5, last: 5 })
        })
      ))
  }
})
