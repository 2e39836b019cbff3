/** The operators' stream on a virtual clock; its form on a socket is tested in test/src/http. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import type { DoctorReport } from "../../../schemas/identity/DoctorReport.ts"
import type { Standing } from "../../../services/operations/OperatorOutlets.ts"
import { OperatorStream } from "../../../services/operations/OperatorStream.ts"
import { Queues } from "../../../services/operations/Queues.ts"
import { Roles } from "../../../services/people/Roles.ts"
import { DeadLetters } from "../../../services/webhooks/DeadLetters.ts"
import { Replays } from "../../../services/webhooks/Replays.ts"
import { RateLimits } from "../../../services/platform/security/RateLimits.ts"
import { Jobs } from "../../../services/platform/messaging/Jobs.ts"
import { randomUUID } from "node:crypto"
import { deadLetter, webhook } from "../../support/TestDeadLetters.ts"
import { identity, person, tell } from "../../support/TestIdentity.ts"

const looks = { queues: 0, findings: 0 }

/** The real queues, each look of which is counted. */
const countedQueues = Layer.effect(
  Queues,
  Effect.map(Queues, (real) => ({
    ...real,
    observed: Effect.andThen(Effect.sync(() => void looks.queues++), real.observed),
  })),
).pipe(Layer.provide(Queues.layer))

const report: DoctorReport = {
  as_of: "2026-01-01T00:00:00.000Z",
  level: "ok",
  items: [{
    level: "ok",
    subject: "clock",
    says: "is right",
    remedy: null,
    since: null,
    hours: null,
    hours_capped: false,
  }],
}
const examined = Effect.sync(() => {
  looks.findings++
  return report
})

const services = OperatorStream.layer(examined).pipe(
  Layer.provide([countedQueues, DeadLetters.layer]),
  Layer.provide(Replays.layer),
  Layer.provide([Jobs.layer, RateLimits.layer]),
  Layer.provideMerge(Roles.layer),
  Layer.provideMerge(identity),
)

const turn = (millis: number) =>
  Effect.andThen(TestClock.adjust(millis), Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 5))))
const turns = (count: number) => Effect.repeat(turn(1_000), { times: count - 1 })

/** Waits, in real time, until a loop has brought about `holds`. */
const comes = (holds: () => boolean) =>
  Effect.repeat(Effect.map(turn(5), holds), { until: (held) => held, times: 2_000 }).pipe(
    Effect.map((held) => assert.isTrue(held, "it did not happen")),
  )

const decoder = new TextDecoder()

const opened = Effect.fnUntraced(
  function* (personId: string, standing: { now: Standing } = { now: "admitted" }) {
    const outlet = yield* (yield* OperatorStream).open({
      personId: personId as Effect.Success<ReturnType<typeof person>>,
      standing: Effect.sync(() => standing.now),
    })
    const said = { text: "", ended: false }
    outlet.attach({
      write: (bytes) => {
        said.text += decoder.decode(bytes)
        return true
      },
      end: () => void (said.ended = true),
    })
    return { said, leave: () => outlet.gone() }
  },
)

const subjects = ({ text }: { readonly text: string }) =>
  [...text.matchAll(/^event: (.*)$/gm)].map(([, subject]) => subject!)

layer(services)("the operators' stream", (it) => {
  it.effect("without a reader nothing is read; many readers share one look a tick and one examination", () =>
    Effect.gen(function* () {
      yield* turns(20)
      assert.deepStrictEqual(looks, { queues: 0, findings: 0 })
      const people = yield* Effect.forEach([1, 2, 3], () => person({ operator: true }))
      const streams = yield* Effect.forEach([...people, ...people], (id) => opened(id))
      yield* comes(() => streams.every(({ said }) => new Set(subjects(said)).size === 4))
      const before = looks.queues
      yield* turns(10)
      assert.isAtMost(looks.queues - before, 11)
      assert.strictEqual(looks.findings, 1)
      // One that comes later begins with the whole state, without a look of its own.
      const late = yield* opened(people[0]!)
      assert.deepStrictEqual(new Set(subjects(late.said)), new Set(["queues", "backlogs", "dead-letters", "findings"]))
      for (const { leave } of [...streams, late]) leave()
      yield* turns(2)
      const after = { ...looks }
      yield* turns(40)
      assert.deepStrictEqual(looks, after)
      assert.strictEqual(yield* (yield* OperatorStream).count, 0)
      // The next one does not wait for the rest of the last pause.
      const next = yield* opened(people[0]!)
      yield* comes(() => next.said.text.includes("event: findings"))
      assert.strictEqual(looks.findings, after.findings + 1)
      next.leave()
    }))

  it.effect("an event has the state as it is now", () =>
    Effect.gen(function* () {
      const stream = yield* opened(yield* person({ operator: true }))
      yield* comes(() => stream.said.text.includes('{"count":0,"capped":false,"newest":null}'))
      const hook = randomUUID()
      yield* webhook(hook, false)
      const letter = yield* deadLetter(hook)
      yield* comes(() => stream.said.text.includes(`{"count":1,"capped":false,"newest":{"delivery_id":"${letter}"`))
      stream.leave()
    }))

  it.effect("ends with the credential, and with the role; what cannot be found out ends nothing", () =>
    Effect.gen(function* () {
      const [one, other] = [yield* person({ operator: true }), yield* person({ operator: true })]
      const standing: { now: Standing } = { now: "undecided" }
      const [judged, demoted] = [yield* opened(one, standing), yield* opened(other)]
      yield* turns(40)
      assert.deepStrictEqual([judged.said.ended, demoted.said.ended], [false, false])
      standing.now = "refused"
      yield* tell("person", {
        id: other,
        version: 2,
        issuer: "https://id.example",
        subject: other,
        display_name: "Somebody",
        status: "active",
        email: `${other}@example.com`,
        email_verified: true,
        operator: false,
      })
      yield* turns(3)
      assert.isTrue(judged.said.ended)
      yield* turns(31)
      assert.isTrue(demoted.said.ended)
    }))

  it.effect("is for operators, ten for each of them", () =>
    Effect.gen(function* () {
      const refused = yield* Effect.flip(opened(yield* person()))
      assert.strictEqual(refused._tag, "RoleRequired")
      const id = yield* person({ operator: true })
      const streams = yield* Effect.forEach(Array.from({ length: 10 }), () => opened(id))
      assert.strictEqual((yield* Effect.flip(opened(id)))._tag, "RateLimited")
      streams[0]!.leave()
      const again = yield* opened(id)
      for (const { leave } of [...streams, again]) leave()
    }))
})
