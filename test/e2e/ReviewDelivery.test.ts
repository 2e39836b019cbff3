/** A review's delivery over HTTP while a product's receiver refuses the pushes, and once it accepts them. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { randomUUID } from "node:crypto"
import { grant } from "../services/lifecycle/LifecycleFixture.ts"
import { type Answer, pushed } from "../services/event-streams/StreamFixture.ts"
import { ask, done, send } from "../src/http/identity/IdentityClient.ts"
import { reason } from "../support/Fixtures.ts"
import { access, institution, member, owner, person, project } from "../support/TestIdentity.ts"
import { management } from "../support/TestManagement.ts"
import { serviceTokenFor } from "../support/TestTokens.ts"
import { until } from "./support/Until.ts"

const program = management({ ROLES: "api,lifecycle", WEBHOOKS_ALLOWED_CIDRS: "127.0.0.0/8" })

layer(program, { excludeTestServices: true })("A review's delivery", (it) => {
  it.effect(
    "shows the number of refused pushes and the last one, until a push is accepted",
    () =>
      Effect.gen(function* () {
        const [fern, sam, ada, pat] = [yield* institution(), yield* person(), yield* person(), yield* person()]
        yield* member(fern, sam, "sponsor")
        yield* member(fern, ada, "administrator")
        const portal = yield* project(fern)
        const ola = yield* person()
        yield* owner(portal, ola)
        const clientId = `receiver-${randomUUID()}`
        yield* grant({ project: portal, owner: ola, administrator: ada }, clientId, ["stream.manage", "events.read"])
        const accessId = yield* access(fern, portal, pat)
        let now: Answer = 503
        const { url } = yield* pushed(() => now)
        const token = yield* serviceTokenFor(clientId, { audience: "service-lifecycle" })
        const authorization = `Bearer ${token}`
        const delivery = { method: "urn:ietf:rfc:8935", endpoint_url: url() }
        done(yield* send("POST", "/v1/lifecycle/streams", { authorization }, { delivery }))

        const path = `/v1/institutions/${fern}/access-grant-reviews`
        const proposal = { access_id: accessId, access_version: 1, reason }
        const { review_id } = done(yield* ask(sam, "POST", path, proposal))
        const shown = Effect.map(ask(sam, "GET", path), (answer) => done(answer).reviews[0].delivery)
        const none = { state: "none", event_id: null, queued_at: null, last_attempt_at: null, attempts: 0 }
        assert.deepStrictEqual(yield* shown, none)
        done(yield* ask(ada, "POST", `${path}/${review_id}/approve`, { reason }))
        const failed = yield* until("a second attempt", shown, ({ attempts }) => attempts >= 2)
        assert.strictEqual(failed.state, "failed")
        assert.isAbove(Date.parse(failed.last_attempt_at), Date.parse(failed.queued_at))
        now = 202
        const taken = yield* until("the delivery", shown, ({ state }) => state === "delivered")
        assert.isAbove(taken.attempts, failed.attempts)
        assert.isAbove(Date.parse(taken.last_attempt_at), Date.parse(failed.last_attempt_at))
        assert.strictEqual(taken.event_id, failed.event_id)
      }),
    60_000,
  )
})
