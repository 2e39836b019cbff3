/**
 * The program is killed with SIGKILL at each moment of a decision, without an answer to its client. The same request to
 * another process, under the same key, is answered as if nothing had happened: each decision was made once, with its
 * evidence, events and receipt, or not at all.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { randomUUID } from "node:crypto"
import type { DecisionFault } from "../../services/platform/Failpoints.ts"
import { demoIssuer } from "../../src/embedded/DemoIdentity.ts"
import { EmbeddedIssuer } from "../../src/embedded/EmbeddedIssuer.ts"
import { api } from "../e2e/support/ApiClient.ts"
import { fixture, type IdentityFixture, ids } from "../e2e/support/ProgramIdentity.ts"
import { reason } from "../support/Fixtures.ts"
import { diesAt, unanswered } from "./support/Doomed.ts"

const points: ReadonlyArray<DecisionFault> = ["decision.opened", "decision.written", "decision.committed"]

interface Decision {
  readonly who: string
  readonly path: string
  readonly body: object
  readonly status: number
  /** SQL that counts the decision's effects, of which there must be one. */
  readonly counts: string
}

/** Decides with a program that dies of it, and again with one that lives. Returns the answer. */
const survived = Effect.fnUntraced(function* (around: IdentityFixture, point: DecisionFault, decision: Decision) {
  const { body, counts, path, status, who } = decision
  const { mintAccessToken } = yield* Effect.provide(EmbeddedIssuer, around.issuer)
  const token = yield* mintAccessToken({
    issuer: demoIssuer,
    subject: who,
    clientId: "portal",
    acr: "urn:service:aal2",
    amr: ["pwd", "otp"],
  })
  const asked = { headers: { authorization: `Bearer ${token}`, "idempotency-key": randomUUID() } }
  const count = Effect.map(around.rows<{ n: number }>(`select count(*)::int as n ${counts}`), ([row]) => row!.n)
  const before = yield* count

  yield* unanswered(around, point, ({ post }) => post(path, body, asked))
  const done = point === "decision.committed"
  assert.strictEqual(yield* count, before + (done ? 1 : 0), `${path} ${point}`)

  const { post } = api(around.instance.origin)
  const answer = yield* post(path, body, asked)
  assert.strictEqual(answer.status, status, answer.text)
  assert.strictEqual(answer.headers.get("idempotency-replayed"), done ? "true" : null)
  const again = yield* post(path, body, asked)
  assert.deepStrictEqual([again.text, again.headers.get("idempotency-replayed")], [answer.text, "true"])
  assert.strictEqual(yield* count, before + 1)
  return answer.json
})

const fern = `/v1/institutions/${ids.fern}`
const reviews = `${fern}/access-grant-reviews`

/**
 * An Access of its own that is proposed for revocation, and whose proposal is signed, each by a program that dies of it;
 * and a campaign over another Access, whose deadline is moved so, and whose item is answered so.
 */
const looked = Effect.fnUntraced(function* (around: IdentityFixture, point: DecisionFault) {
  const dying = (decision: Decision) => survived(around, point, decision)
  const subject = `again-${point.replace(".", "-")}`
  const line = { version: 1, institution_id: ids.fern, project_id: ids.fernPortal, person_id: subject, role: "user" }
  yield* around.apply(
    { kind: "person", id: subject, version: 1, issuer: demoIssuer, subject, status: "active" },
    ...["ended", "kept"].map((id) => ({ kind: "access", id: `${subject}-${id}`, ...line, state: "active" })),
  )
  const [ended, kept] = [`${subject}-ended`, `${subject}-kept`]
  const { policy_review, request_id } = yield* dying({
    who: "sam",
    path: `${fern}/access/${ended}/propose-revocation`,
    body: { expected_version: 1, reason },
    status: 201,
    counts: `from requests r join policy_reviews v on v.request_id = r.id
      where r.kind = 'access_revocation' and r.fields ->> 'access_id' = '${ended}'`,
  })
  yield* dying({
    who: "ada",
    path: `/v1/policies/reviews/${policy_review.review_id}/approve`,
    body: { role: "administrator", reason },
    status: 200,
    counts: `from access_ends n join policy_approvals a on a.review_id = '${policy_review.review_id}'
      join timers t on t.aggregate_id = 'access:${ended}' where n.request_id = '${request_id}'`,
  })

  const { campaign_id } = yield* around.post("ada", `${fern}/campaigns`, {
    name: "Spring",
    reason,
    deadline: new Date(Date.now() + 86_400_000).toISOString(),
    access_ids: [kept],
  })
  const later = new Date(Date.now() + 2 * 86_400_000).toISOString()
  yield* dying({
    who: "ada",
    path: `${fern}/campaigns/${campaign_id}/reschedule`,
    body: { deadline: later, reason },
    status: 200,
    counts: `from campaigns c join audit_records a on a.subject = 'campaign:' || c.id
      and a.action = 'campaign.rescheduled' where c.id = '${campaign_id}' and c.deadline = '${later}'`,
  })
  const [item] = yield* around.rows<{ id: string }>(`
    select id::text as id from campaign_items where campaign_id = '${campaign_id}'`)
  // The one answer is a confirmation, the other a proposal.
  const confirms = point === "decision.written"
  yield* dying({
    who: "sam",
    path: `${fern}/campaigns/${campaign_id}/items/${item!.id}/answer`,
    body: { answer: confirms ? "confirm" : "propose_revocation", reason },
    status: 200,
    counts: confirms
      ? `from campaign_items i join access_confirmations c on c.id = i.confirmation_id and c.access_id = '${kept}'`
      : `from campaign_items i join requests r on r.id = i.request_id and r.fields ->> 'access_id' = '${kept}'`,
  })
  return ended
})

/** What came of the end of an Access: its versions, events of its revocation, records and timers. */
const endOf = (around: IdentityFixture, accessId: string) =>
  Effect.map(
    around.rows<{ found: ReadonlyArray<number> }>(`
      select array[(select count(*)::int from access_versions where access_id = '${accessId}'),
        (select count(*)::int from lifecycle_events where kind = 'access-revoked'
          and payload #>> '{access,access_id}' = '${accessId}'),
        (select count(*)::int from audit_records where action = 'access.ended' and subject = 'access:${accessId}'),
        (select count(*)::int from timers where aggregate_id = 'access:${accessId}')] as found`),
    ([row]) => row!.found,
  )

/** A program that ends the Access dies of it, at each point; the claim of the first one is freed as its lease's end does. */
const ending = Effect.fnUntraced(function* (around: IdentityFixture, accessId: string) {
  assert.deepStrictEqual(yield* endOf(around, accessId), [1, 0, 0, 1])
  for (const [point, left] of [["decision.written", [1, 0, 0, 1]], ["decision.committed", [2, 1, 1, 0]]] as const) {
    yield* diesAt(around, point, "timers")
    assert.deepStrictEqual(yield* endOf(around, accessId), [...left], point)
    yield* around.rows(`update timers set claim = null, lease_until = null`)
  }
})

describe("decisions, killed", () => {
  it.live("are made once, or not at all", () =>
    Effect.gen(function* () {
      // Timers are left to the programs that die.
      const around = yield* fixture({}, { ROLES: "api,relay,lifecycle" })
      for (const point of points) {
        const dying = (decision: Decision) => survived(around, point, decision)
        const { review_id } = yield* dying({
          who: "sam",
          path: reviews,
          status: 201,
          body: { access_id: ids.patAccess, access_version: 1, reason },
          counts: "from access_reviews r join access_review_evidence e on e.review_id = r.id and e.action = 'propose'",
        })
        yield* dying({
          who: "ada",
          path: `${reviews}/${review_id}/approve`,
          body: { reason },
          status: 200,
          counts: `from access_reviews r join access_review_evidence e on e.review_id = r.id and e.action = 'approve'
            join lifecycle_events v on v.id = r.approval_event_id and v.kind = 'access-review-approved'`,
        })
        yield* dying({
          who: "ada",
          path: `${reviews}/${review_id}/revoke`,
          body: { reason },
          status: 200,
          counts: `from access_reviews r join access_review_evidence e on e.review_id = r.id and e.action = 'revoke'
            join lifecycle_events v on v.id = r.revocation_event_id and v.kind = 'access-review-revoked'`,
        })

        const subject = point.replace(".", "-")
        yield* around.apply({ kind: "person", id: subject, version: 1, issuer: demoIssuer, subject, status: "active" })
        const { json } = yield* (yield* around.as({ subject })).post(
          "/v1/me/access-requests",
          { institution_id: ids.fern, project_id: ids.fernPortal, reason },
          { headers: { "idempotency-key": randomUUID() } },
        )
        const path = `/v1/policies/reviews/${json.policy_review.review_id}/approve`
        yield* around.post("sam", path, { role: "sponsor", reason })
        yield* dying({
          who: "ada",
          path,
          body: { role: "administrator", reason },
          status: 200,
          counts: `from access a join access_versions v on v.access_id = a.id and v.access_version = 1
            join lifecycle_events e on e.id = v.event_id where a.person_id = '${subject}'`,
        })
        const numbered = yield* around.rows<{ whole: boolean }>(`
          select count(*) = max(position) as whole from lifecycle_events where project_id = '${ids.fernPortal}'`)
        assert.deepStrictEqual(numbered, [{ whole: true }])
      }
      const [first, second] = [
        yield* looked(around, "decision.written"),
        yield* looked(around, "decision.committed"),
      ]
      yield* around.rows(
        `update timers set not_before = due_at + interval '1 day' where aggregate_id = 'access:${second}'`,
      )
      yield* ending(around, first)
    }).pipe(Effect.scoped), 900_000)
})
