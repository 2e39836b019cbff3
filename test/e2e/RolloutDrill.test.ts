/**
 * A failed rollout: the client is disabled, its sessions end, nothing new is activated, the latest revocations stay
 * enforced and are delivered; a release restores nothing that ended meanwhile. The product sees all of it. Other work
 * of the institution goes on: people are invited, and join.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { randomUUID } from "node:crypto"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { demoIssuer } from "../../src/embedded/DemoIdentity.ts"
import { reason } from "../support/Fixtures.ts"
import { fixture, ids, product } from "./support/ProgramIdentity.ts"
import { until } from "./support/Until.ts"

/** The token in the mail to this recipient, from the dev mailbox; null while there is none. */
const invitationTo = (home: string, recipient: string) => {
  const folder = join(home, "mailbox")
  const letters = (existsSync(folder) ? readdirSync(folder) : []).filter((name) => name.endsWith(".eml"))
    .map((name) => readFileSync(join(folder, name), "utf8").replaceAll(/=\r?\n/g, ""))
  const letter = letters.find((text) => text.includes(`To: ${recipient}`))
  return letter === undefined ? null : /\/enrollments\/([A-Za-z0-9_-]{43})/.exec(letter)![1]!
}

describe("a rollout that fails", () => {
  it.live(
    "ends its sessions and client, activates nothing new, and its release restores nothing",
    () =>
      Effect.gen(function* () {
        const at = yield* fixture()
        const person = (subject: string) => ({
          kind: "person",
          id: subject,
          version: 1,
          issuer: demoIssuer,
          subject,
          display_name: subject,
          email: `${subject}@fern.example`,
          email_verified: true,
          status: "active",
        })
        const access = (subject: string, more: object = {}) => ({
          kind: "access",
          id: `a-${subject}`,
          version: 1,
          institution_id: ids.fern,
          project_id: ids.fernPortal,
          person_id: subject,
          role: "user",
          state: "active",
          ...more,
        })
        yield* at.apply(person("quinn"), person("ron"), person("nora"), access("quinn"))
        yield* at.grant("product")
        const shop = yield* product(at)
        yield* shop.enters("quinn", "may")
        yield* shop.enters("pat", "may")
        const before = Math.floor(Date.now() / 1_000)
        const asked = yield* (yield* at.as({ subject: "ron" })).post("/v1/me/access-requests", {
          institution_id: ids.fern,
          project_id: ids.fernPortal,
          reason,
        }, { headers: { "idempotency-key": randomUUID() } })
        assert.strictEqual(asked.status, 201, asked.text)
        const review = `/v1/policies/reviews/${asked.json.policy_review.review_id}/approve`
        yield* at.post("sam", review, { role: "sponsor", reason })
        const grants = `/v1/projects/${ids.fernPortal}/lifecycle-service-grants`
        const proposed = yield* at.post("sam", grants, {
          service_id: "another",
          environment: "production",
          reason,
          capabilities: ["events.read"],
        })

        const rollout = (action: string) => at.type("rollout", action, "--project", ids.fernPortal, "--reason", reason)
        const failed = yield* rollout("fail")
        assert.strictEqual(failed.code, 0, failed.output)
        assert.match(failed.output, / held, version \d+/)
        // Earlier sessions are refused by the product; a new sign-in is allowed by the Access that is still effective.
        yield* until("sessions ended", shop.enter("quinn", before - 1), (told) => told === "session_ended")
        assert.deepStrictEqual(
          yield* at.rows(
            `select count(*)::int as open from embedded_clients c join projects p on p.client_id = c.client_id
          where p.id = $1 and not c.disabled`,
            [ids.fernPortal],
          ),
          [{ open: 0 }],
        )

        const refused = Effect.fnUntraced(function* (path: string, body: object) {
          const reply = yield* (yield* at.as("ada")).post(path, body, { headers: { "idempotency-key": randomUUID() } })
          assert.strictEqual(`${reply.status} ${reply.json?.code}`, "403 environment_held", reply.text)
        })
        yield* refused(review, { role: "administrator", reason })
        yield* refused(`${grants}/${proposed.id}/approve`, { expected_version: 1, reason })
        const launch = yield* (yield* at.as("sam")).post(`/v1/projects/${ids.fernPortal}/launch-proposals`, {
          launch_url: "https://portal.fern.example/",
          reason,
        }, { headers: { "idempotency-key": randomUUID() } })
        assert.deepInclude(launch.json, { status: 403, code: "environment_held" })

        const path = `/v1/institutions/${ids.fern}/enrollments`
        const invited = yield* at.post("sam", path, { recipient: "nora@fern.example", reason })
        yield* at.post("ada", `/v1/policies/reviews/${invited.policy_review.review_id}/approve`, {
          role: "administrator",
          reason,
        })
        const look = Effect.sync(() => invitationTo(at.home, "nora@fern.example"))
        const token = yield* until("the invitation", look, (found) => found !== null)
        const come = yield* (yield* at.as({ subject: "nora" })).post(`/v1/enrollments/${token}/accept`, {})
        assert.deepInclude(come.json, { state: "accepted", membership: { role: "member", state: "active" } })
        const mine = (yield* at.as("sam")).get("/v1/me/requests?limit=1")
        yield* until("the letter is known to have left", mine, ({ json: { items: [one] } }) =>
          one.id === invited.enrollment_id && one.state === "accepted" && one.delivery.state === "delivered")

        // Revocations are enforced and delivered all the while.
        yield* at.apply(access("quinn", { version: 2, state: "revoked" }))
        yield* shop.enters("quinn", "no_access")

        assert.match((yield* rollout("release")).output, / registered, version \d+/)
        yield* at.published
        assert.strictEqual(yield* shop.enter("quinn"), "no_access")
        assert.deepStrictEqual(yield* at.rows(`select state from access where id = 'a-quinn'`), [{ state: "revoked" }])
        assert.strictEqual(yield* shop.enter("pat", before - 1), "session_ended")
        // Waiting requests can be approved again; the failed launch does not come back by itself.
        yield* at.post("ada", review, { role: "administrator", reason })
        yield* shop.enters("ron", "may")
        assert.deepStrictEqual(
          yield* at.rows(`select state, rollout from projects where id = $1`, [ids.fernPortal]),
          [{ state: "registered", rollout: null }],
        )
        assert.deepStrictEqual(
          yield* at.rows(`select state from provider_jobs where project_id = $1 and kind = 'client.create'`, [
            ids.fernPortal,
          ]),
          [],
        )
      }),
    240_000,
  )
})
