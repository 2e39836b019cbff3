/** The delivery state of a decision while receivers do not accept its pushes: attempts, the last one, and ambiguity. */
import { assert, layer } from "@effect/vitest"
import { Effect, Queue } from "effect"
import { lifecycleEventKinds } from "../../../schemas/identity/LifecycleEventKinds.ts"
import { ServiceGrants } from "../../../services/access/ServiceGrants.ts"
import { Streams } from "../../../services/event-streams/Streams.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { until } from "../../e2e/support/Until.ts"
import {
  type Answer,
  push,
  pushed,
  pushing,
  type Receiving,
  receiving,
  stream,
  streaming,
  subjects,
  tellAll,
} from "./StreamFixture.ts"
import { grant, signAll } from "../lifecycle/LifecycleFixture.ts"

/** The delivery state of the approval of a service's grant. */
const deliveryOf = Effect.fnUntraced(function* ({ owner: personId, project: projectId }: Receiving, service: string) {
  const grants = yield* (yield* ServiceGrants).list({ personId, projectId, limit: 100, afterId: null })
  return grants.find(({ service_id }) => service_id === service)!.delivery
})

const approved = (here: Receiving, service: string) => Effect.andThen(grant(here, service, ["events.read"]), signAll)

const settled = (here: Receiving, service: string, state: string, attempts: number) =>
  until(
    `${state} ${attempts}`,
    deliveryOf(here, service),
    (found) => found.state === state && found.attempts >= attempts,
  )

layer(streaming({ failuresInARow: 1_000 }, 300), { excludeTestServices: true })("A push that is not accepted", (it) => {
  const cases: ReadonlyArray<readonly [name: string, answer: Answer, state: "failed" | "ambiguous"]> = [
    ["an answer that is not 202", 500, "failed"],
    ["a refusal", { err: "access_denied" }, "failed"],
    ["a connection that is cut", "reset", "ambiguous"],
    ["no answer", "silence", "ambiguous"],
  ]
  for (const [name, answer, state] of cases) {
    it.effect(`${name}: a delivery is ${state} and counts its attempts until the receiver accepts it`, () =>
      Effect.gen(function* () {
        yield* pushing
        const here = yield* receiving
        let now = answer
        const { arrivals, url } = yield* pushed(() => now)
        yield* stream(here, push(url()))
        yield* approved(here, "shop")
        const first = yield* settled(here, "shop", state, 1)
        const more = yield* settled(here, "shop", state, first.attempts + 2)
        assert.isAtLeast(arrivals.length, more.attempts)
        assert.isAbove(Date.parse(more.last_attempt_at!), Date.parse(first.last_attempt_at!))
        assert.isAtLeast(Date.parse(first.last_attempt_at!), Date.parse(first.queued_at!))
        // The next event in order has not been attempted yet.
        yield* approved(here, "later")
        assert.deepInclude(yield* deliveryOf(here, "later"), { state: "queued", attempts: 0, last_attempt_at: null })
        now = 202
        const taken = yield* settled(here, "shop", "delivered", more.attempts + 1)
        assert.isAtLeast(Date.parse(taken.last_attempt_at!), Date.parse(more.last_attempt_at!))
        assert.deepInclude(yield* settled(here, "later", "delivered", 1), { attempts: 1 })
      }))
  }

  it.effect("a delivery that may have arrived stays ambiguous through failed retries, and fails once refused", () =>
    Effect.gen(function* () {
      yield* pushing
      const here = yield* receiving
      let now: Answer = "reset"
      const { url } = yield* pushed(() => now)
      yield* stream(here, push(url()))
      yield* approved(here, "shop")
      const { attempts } = yield* settled(here, "shop", "ambiguous", 1)
      now = 503
      yield* settled(here, "shop", "ambiguous", attempts + 3)
      now = { err: "invalid_request" }
      yield* settled(here, "shop", "failed", attempts + 4)
    }))

  it.effect("one receiver's success does not hide another's refusal, until the refused stream is disabled", () =>
    Effect.gen(function* () {
      yield* pushing
      const here = yield* receiving
      const { heard, url } = yield* pushed()
      const { url: refused } = yield* pushed(() => 500)
      const other = { issuer: here.receiver.issuer, clientId: `${here.receiver.clientId}-other` }
      yield* grant(here, other.clientId, ["stream.manage", "events.read"])
      yield* signAll
      yield* stream(here, push(url()))
      const stuck = yield* stream({ ...here, receiver: other }, push(refused()))
      yield* approved(here, "shop")
      yield* Queue.take(heard)
      yield* settled(here, "shop", "failed", 2)
      yield* (yield* Streams).setStatus(other, { stream_id: stuck, status: "disabled" })
      assert.strictEqual((yield* deliveryOf(here, "shop")).state, "delivered")
    }))

  it.effect("a filtered stream counts its own attempts, and the accepted push makes the delivery delivered", () =>
    Effect.gen(function* () {
      yield* pushing
      const here = yield* receiving
      let now: Answer = 500
      const { url } = yield* pushed(() => now)
      yield* stream(here, { ...push(url()), events_requested: [lifecycleEventKinds["service-grant-approved"].uri] })
      yield* approved(here, "shop")
      const { attempts } = yield* settled(here, "shop", "failed", 2)
      now = 202
      yield* settled(here, "shop", "delivered", attempts + 1)
    }))

  it.effect("attempts are not kept for events that no API answer reports on", () =>
    Effect.gen(function* () {
      yield* pushing
      const here = yield* receiving
      const { heard, url } = yield* pushed(() => 500)
      yield* stream(here, push(url()))
      yield* tellAll(here, subjects(1))
      yield* Queue.takeN(heard, 3)
      const { sql } = yield* Database
      assert.deepStrictEqual(yield* sql`select from lifecycle_attempts where project_id = ${here.project}`, [])
    }))
})
