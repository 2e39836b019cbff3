/**
 * The program is killed with SIGKILL at each moment of a decision, without an answer to its client. The same request to
 * another process, under the same key, is answered as if nothing had happened: each decision was made once, with its
 * evidence, events and receipt, or not at all.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit } from "effect"
import { randomUUID } from "node:crypto"
import { copyFileSync } from "node:fs"
import { join } from "node:path"
import type { DecisionFault } from "../../services/platform/Failpoints.ts"
import { demoIssuer } from "../../src/embedded/DemoIdentity.ts"
import { EmbeddedIssuer, issuerKeyFile } from "../../src/embedded/EmbeddedIssuer.ts"
import { api } from "../e2e/support/ApiClient.ts"
import { fixture, type IdentityFixture, ids } from "../e2e/support/ProgramIdentity.ts"
import { reason } from "../support/Fixtures.ts"
import { home, start } from "../support/Processes.ts"

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

  yield* Effect.scoped(Effect.gen(function* () {
    const folder = yield* home
    copyFileSync(join(around.home, issuerKeyFile), join(folder, issuerKeyFile))
    const doomed = yield* start({
      module: "test/long/support/FaultMain.ts",
      env: {
        ...around.env(),
        PORT: "0",
        ROLES: "api",
        BAILIWICK_HOME: folder,
        FAULT: `${point}:1`,
        BAILIWICK_KEYS_FILE: join(around.home, "keys.json"),
      },
    })
    const [, origin] = yield* doomed.line(/bailiwick ready on (http:\S+)/)
    assert.isTrue(Exit.isFailure(yield* Effect.exit(api(() => origin!).post(path, body, asked))), "no answer")
    assert.isNull(yield* doomed.exited, `SIGKILL, nothing else: ${doomed.output()}`)
  }))
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

const reviews = `/v1/institutions/${ids.fern}/access-grant-reviews`

describe("decisions, killed", () => {
  it.live("are made once, or not at all", () =>
    Effect.gen(function* () {
      const around = yield* fixture()
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
    }).pipe(Effect.scoped), 900_000)
})
