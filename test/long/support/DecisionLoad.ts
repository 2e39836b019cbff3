/**
 * Decisions of an institution, by a client that knows several programs and may lose any of them at any moment: a request
 * without an answer is repeated at another one under its key. Each access review is proposed, approved and revoked.
 */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { randomUUID } from "node:crypto"
import { Database } from "../../../services/platform/database/Database.ts"
import { demoIdentityIds as ids, demoIdentityLines, demoIssuer } from "../../../src/embedded/DemoIdentity.ts"
import { api, type Reply } from "../../e2e/support/ApiClient.ts"
import type { ProgramFixture } from "../../e2e/support/ProgramFixture.ts"
import type { ProgramInstance } from "../../e2e/support/ProgramInstance.ts"
import { until } from "../../e2e/support/Until.ts"
import { reason } from "../../support/Fixtures.ts"

/** A request that was answered, and its answer. */
interface Answered {
  readonly who: string
  readonly path: string
  readonly body: object
  readonly key: string
  readonly reply: Reply
}

const reviews = `/v1/institutions/${ids.fern}/access-grant-reviews`

/** The people of the demo, told on the bus; their issuer is the fixture's own. */
const told = (fixture: ProgramFixture) =>
  Effect.forEach(demoIdentityLines, (line) => {
    const own = "issuer" in line && line.issuer === demoIssuer ? { ...line, issuer: fixture.people.issuer } : line
    return fixture.feed.publish(`intake.v1.identity-directory.${line.kind}`, JSON.stringify({ ...own, version: 1 }))
  })

/** `up` are the running programs, of which each request goes to the next. */
export const decisionLoad = Effect.fnUntraced(function* (fixture: ProgramFixture, up: ReadonlySet<ProgramInstance>) {
  yield* told(fixture)
  const answered: Array<Answered> = []
  let [rounds, turn, doubts] = [0, 0, 0]

  const ask = Effect.fnUntraced(function* (at: ProgramInstance, request: Omit<Answered, "reply">) {
    const headers = { ...yield* fixture.people.bearer(request.who), "idempotency-key": request.key }
    return yield* api(at.origin).post(request.path, request.body, { headers })
  })

  const insist = Effect.fnUntraced(function* (who: string, path: string, body: object, status: number) {
    const request = { who, path, body: { ...body, reason }, key: randomUUID() }
    for (;;) {
      const some = [...up]
      const reply = yield* Effect.suspend(() => ask(some[turn++ % some.length]!, request)).pipe(
        Effect.timeoutOrElse({ duration: "20 seconds", orElse: () => Effect.succeed(null) }),
        // The connection of a program that was killed. Not `catchCause`: with it nothing would interrupt the load.
        Effect.catchDefect(() => Effect.succeed(null)),
      )
      if (reply !== null && reply.status !== 503) {
        assert.strictEqual(reply.status, status, `${path} ${reply.text}`)
        answered.push({ ...request, reply })
        return reply.json
      }
      doubts++
      yield* Effect.sleep("100 millis")
    }
  })

  const me = Effect.suspend(() =>
    Effect.flatMap(
      fixture.people.bearer("sam"),
      (headers) => api([...up][0]!.origin, headers).get(`/v1/institutions/${ids.fern}/projects`),
    )
  )
  // Seldom: credentials that are refused are counted.
  yield* until("the people", Effect.delay(me, "500 millis"), ({ status }) => status === 200)

  const round = Effect.gen(function* () {
    const { review_id } = yield* insist("sam", reviews, { access_id: ids.patAccess, access_version: 1 }, 201)
    yield* insist("ada", `${reviews}/${review_id}/approve`, {}, 200)
    yield* insist("ada", `${reviews}/${review_id}/revoke`, {}, 200)
    rounds++
    yield* Effect.sleep("200 millis")
  })

  /** Asks each answered request again, of this program: it answers what the other one did. */
  const repeated = (at: ProgramInstance) =>
    Effect.forEach(answered, ({ reply, ...request }) =>
      Effect.map(ask(at, request), (again) => {
        const replayed = again.headers.get("idempotency-replayed")
        assert.deepStrictEqual([again.status, again.text, replayed], [reply.status, reply.text, "true"])
      }), { concurrency: 4, discard: true })

  /** Each round made one review with one proposal, one approval and one revocation; nothing else did. */
  const close = Effect.gen(function* () {
    const { sql } = yield* Database
    const [made] = yield* sql<{ reviews: number; revoked: number; evidence: number; events: number }>`
      select (select count(*)::int from access_reviews) as reviews,
        (select count(*)::int from access_reviews where revocation_event_id is not null) as revoked,
        (select count(*)::int from access_review_evidence) as evidence,
        (select count(*)::int from lifecycle_events where kind in ('access-review-approved', 'access-review-revoked')) as events`
    const begun = answered.filter(({ path }) => path === reviews).length
    assert.strictEqual(begun, rounds, "a round was cut off")
    assert.deepStrictEqual(made, { reviews: rounds, revoked: rounds, evidence: 3 * rounds, events: 2 * rounds })
    const [numbered] = yield* sql<{ whole: boolean }>`
      select count(*) = max(position) as whole from lifecycle_events where project_id = ${ids.fernPortal}`
    assert.isTrue(numbered!.whole, "positions without a gap")
    return { rounds, answered: answered.length, doubts }
  })
  return { round, rounds: () => rounds, repeated, close }
})
