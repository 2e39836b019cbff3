/**
 * Operations that no other test asks over HTTP in its own process: probes, the deliveries of one webhook, and what a
 * product's service fetches. Their recorded examples (src/http/docs/RecordedExamples.json) come from here.
 */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { randomUUID } from "node:crypto"
import { decodeJwt } from "jose"
import { Database } from "../../../../services/platform/database/Database.ts"
import { Server } from "../../../../src/http/Server.ts"
import { grant, scene } from "../../../services/lifecycle/LifecycleFixture.ts"
import { management } from "../../../support/TestManagement.ts"
import { serviceTokenFor } from "../../../support/TestTokens.ts"
import { ownPage, signedIn, staged } from "../console/ConsoleStage.ts"
import { send } from "../identity/IdentityClient.ts"

/** A state of more than a mebibyte, which a snapshot tells in parts. */
const grown = Effect.fnUntraced(function* (project: string) {
  const { sql } = yield* Database
  yield* sql`
    insert into lifecycle_state (project_id, key, value, position)
    select ${project}, 'access/' || lpad(i::text, 8, '0'), jsonb_build_object('access_id', lpad(i::text, 8, '0'),
      'version', 1, 'role', repeat('r', 60), 'user', jsonb_build_object('format', 'iss_sub', 'iss',
        'https://id.example', 'sub', 'person-' || i)), 0
    from generate_series(1, 9000) i`
})

layer(staged(), { excludeTestServices: true })("operations that are seldom asked", (it) => {
  it.effect("the probes answer", () =>
    Effect.gen(function* () {
      for (const path of ["/health", "/ready"]) {
        const answer = yield* send("GET", path)
        assert.strictEqual(answer.status, 200, answer.text)
      }
    }))

  it.effect("the deliveries of one webhook are listed", () =>
    Effect.gen(function* () {
      const alice = yield* signedIn("Alice")
      const json = { url: "https://hooks.example.com/mail", events: ["email.bounced"] }
      const hook = yield* alice.ask("POST", "/v1/webhooks/", { json, headers: ownPage })
      yield* alice.ask("POST", `/v1/webhooks/${hook.body.id}/test`, { headers: ownPage })
      const { body, status } = yield* alice.ask("GET", `/v1/webhooks/${hook.body.id}/deliveries`)
      assert.deepStrictEqual([status, body.total], [200, 1])
    }))
})

layer(management({ ROLES: "api,lifecycle" }), { excludeTestServices: true })(
  "operations of a product's service",
  (it) => {
    it.effect("a product's service acknowledges events, polls a stream, and fetches a snapshot's part", () =>
      Effect.gen(function* () {
        const made = yield* scene
        const clientId = `service-${randomUUID()}`
        const can = ["events.read", "snapshot.read", "cursor.acknowledge", "stream.manage"] as const
        yield* grant(made, clientId, can)
        const headers = {
          authorization: `Bearer ${yield* serviceTokenFor(clientId, { audience: "service-lifecycle" })}`,
        }
        const path = `/v1/projects/${made.project}/lifecycle`

        const events = yield* send("GET", `${path}/events?after=${btoa("1.0").replace(/=+$/, "")}&wait=30`, headers)
        assert.strictEqual(events.status, 200, events.text)
        const page = events.body
        const [event] = Object.values(
          decodeJwt(page.items.at(-1).set)["events"] as Record<string, { lifecycle: { digest: string } }>,
        )
        const acknowledgement = { cursor: page.cursor, installed_version: "1", chain_head: event!.lifecycle.digest }
        const acknowledged = yield* send("POST", `${path}/acknowledgements`, headers, acknowledgement)
        assert.strictEqual(acknowledged.status, 200, acknowledged.text)

        const stream = yield* send("POST", "/v1/lifecycle/streams", headers, {
          delivery: { method: "urn:ietf:rfc:8936" },
        })
        const polled = yield* send("POST", new URL(stream.body.delivery.endpoint_url).pathname, headers, {
          maxEvents: 2,
          returnImmediately: true,
        })
        assert.strictEqual(polled.status, 200, polled.text)

        yield* grown(made.project)
        const { url } = yield* Server
        const snapshot = yield* Effect.promise(() =>
          fetch(`${url}${path}/snapshot`, { headers }).then((one) => one.text())
        )
        const { parts } = decodeJwt(snapshot) as { parts: ReadonlyArray<{ href: string; bytes: number }> }
        const smallest = parts.toSorted((a, b) => a.bytes - b.bytes)[0]!
        const part = yield* Effect.promise(() => fetch(`${url}${smallest.href}`, { headers }).then((one) => one.text()))
        assert.lengthOf(part, smallest.bytes)
      }))
  },
)
