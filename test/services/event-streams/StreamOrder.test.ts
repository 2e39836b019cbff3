/** The order that a stream promises, and its completeness, under unreliable receivers. */
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { StreamCreation } from "../../../schemas/identity/StreamBodies.ts"
import { lifecycleEventKinds } from "../../../schemas/identity/LifecycleEventKinds.ts"
import type { Reason } from "../../../services/platform/Outbound.ts"
import { refusalIn, refusalOf } from "../../../services/event-streams/StreamDelivery/PushRefusal.ts"
import { verdictOf } from "../../../services/event-streams/StreamDelivery/PushOutcome.ts"
import { until } from "../../e2e/support/Until.ts"
import { diceOf } from "../lifecycle/RandomEvents.ts"
import {
  type Answer,
  placesOf,
  push,
  pushed,
  pushing,
  receiving,
  rowOf,
  shortDeadline,
  stream,
  streaming,
  tellAll,
} from "./StreamFixture.ts"

const seed = Number(process.env["SEED"] ?? Date.now() % 1_000_000)
const people = ["a", "b", "c", "d", "e"]
const bad: ReadonlyArray<Answer> = [500, 204, "reset", { err: "invalid_request" }, { err: "access_denied" }]

/** Pushes a random history to a receiver that accepts about 4 of 5; returns the events sent and those accepted. */
const walk = Effect.fnUntraced(function* (more: StreamCreation) {
  yield* pushing
  const dice = diceOf(seed)
  const here = yield* receiving
  const taken: Array<string> = []
  const { url } = yield* pushed(({ jti }) => {
    if (dice.next() < 0.2) return dice.one(bad)
    taken.push(jti)
    return 202
  })
  const streamId = yield* stream(here, { ...push(url()), ...more })
  const told: Array<{ readonly jti: string; readonly who: string }> = []
  for (let wave = 0; wave < 4; wave++) {
    const whos = Array.from({ length: 1 + dice.below(12) }, () => dice.one(people))
    const ids = yield* tellAll(here, whos)
    told.push(...whos.map((who, i) => ({ who, jti: ids[i]! })))
    yield* until("some of it", Effect.sync(() => taken.length), (n) => n > told.length / 2)
  }
  const { head } = yield* placesOf(here)
  yield* until("the end", rowOf(streamId), ({ position, claim }) => position === head && claim === null)
  return { taken, told }
})

layer(streaming({ failuresInARow: 100_000 }), { excludeTestServices: true })(`order, SEED=${seed}`, (it) => {
  it.effect("an unfiltered stream delivers each event once, by position", () =>
    Effect.gen(function* () {
      const { taken, told } = yield* walk({})
      assert.deepStrictEqual(taken, told.map(({ jti }) => jti))
    }))

  it.effect("a filtered stream delivers each event once, in the order of each subject", () =>
    Effect.gen(function* () {
      const wanted = [lifecycleEventKinds["session-revoked"].uri, lifecycleEventKinds["account-disabled"].uri]
      const { taken, told } = yield* walk({ events_requested: wanted })
      for (const person of people) {
        const theirs = told.filter(({ who }) => who === person).map(({ jti }) => jti)
        assert.deepStrictEqual(taken.filter((jti) => theirs.includes(jti)), theirs, person)
      }
      assert.lengthOf(taken, told.length)
    }))
})

layer(streaming({ streamsAtOnce: 2, warmMillis: 60_000 }, shortDeadline), { excludeTestServices: true })(
  "few slots for streams",
  (it) => {
    it.effect("receivers that never answer, and idle streams, keep no other stream from being served", () =>
      Effect.gen(function* () {
        yield* pushing
        const here = yield* receiving
        const { arrivals, url } = yield* pushed(({ path }) => path === "/hole" ? "silence" : 202)
        for (const path of ["/hole", "/one", "/two", "/three"]) yield* stream(here, push(url(path)))
        for (const who of ["first", "second"]) {
          yield* tellAll(here, [who])
          // An event whose 202 came too late is sent again, so distinct ids are counted.
          const told = (path: string) =>
            new Set(arrivals.filter((arrival) => arrival.path === path).map(({ jti }) => jti)).size
          const all = Effect.sync(() => ["/one", "/two", "/three"].map(told))
          yield* until(`the ${who}`, all, (counts) => counts.every((n) => n === (who === "first" ? 1 : 2)))
        }
      }))
  },
)

const outcome = (status: number | null, error: Reason | null, body: string | null) =>
  verdictOf({ status, error, durationMs: 1, body: body === null ? null : new TextEncoder().encode(body) })

describe("the outcome of a push", () => {
  it("only a 202 is an acceptance, whatever its body", () => {
    assert.deepStrictEqual(outcome(202, null, null), { _tag: "delivered" })
    assert.deepStrictEqual(outcome(202, "body", "cut"), { _tag: "delivered" })
    for (const status of [200, 201, 204, 302, 401, 404, 500]) {
      const failed = { _tag: "failed", reason: `status ${status}`, unanswered: false } as const
      assert.deepStrictEqual(outcome(status, null, null), failed)
    }
    assert.deepInclude(outcome(500, "body", "cut"), { _tag: "failed", unanswered: false })
  })

  it("a push without an answer may have arrived, unless the request never left", () => {
    for (const reason of ["timeout", "reset", "protocol", "body"] as const) {
      assert.deepStrictEqual(outcome(null, reason, null), { _tag: "failed", reason, unanswered: true })
    }
    for (const reason of ["dns", "connect", "tls", "blocked_address"] as const) {
      assert.deepStrictEqual(outcome(null, reason, null), { _tag: "failed", reason, unanswered: false })
    }
  })

  it("a refusal is a 400 with an error code", () => {
    const said = outcome(400, null, '{"err":"invalid_key","description":"which?"}')
    assert.deepStrictEqual(said, { _tag: "refused", refusal: { code: "invalid_key", said: "invalid_key: which?" } })
    assert.strictEqual(outcome(500, null, '{"err":"invalid_key"}')._tag, "failed")
    for (const body of ["", "{", "[]", "null", '"invalid_key"', "{}", '{"err":1}']) {
      assert.deepStrictEqual(
        outcome(400, null, body),
        { _tag: "failed", reason: "status 400", unanswered: false },
        body,
      )
    }
    assert.isNull(refusalIn(null))
  })

  it("a refusal's text is kept as one line of at most 300 characters, its code where it is registered", () => {
    assert.deepStrictEqual(refusalOf({ err: "my own", description: "" }), { code: "other", said: "my own" })
    const { code, said } = refusalOf({
      err: "invalid_state",
      description: `a\u0000b\u001b[31m\u202e\n\t${"ä😀".repeat(500)}`,
    })
    assert.strictEqual(code, "invalid_state")
    assert.match(said, /^invalid_state: a b \[31m ä😀/u)
    assert.lengthOf([...said], 300)
  })
})
