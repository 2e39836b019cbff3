/** Stream management, by the OpenID conformance suite's transmitter modules, and the cases that these leave open. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { randomUUID } from "node:crypto"
import { scimEvents, scimTwins } from "../../../../schemas/identity/ScimTwins.ts"
import { knowsTwins } from "../../../../services/event-streams/Streams/Configuration.ts"
import { closeToOlder } from "../../../../services/platform/database/OlderPrograms.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import { grant, scene } from "../../../services/lifecycle/LifecycleFixture.ts"
import { codeOf } from "../../../support/Fixtures.ts"
import { Logged, management } from "../../../support/TestManagement.ts"
import { done, send } from "../identity/IdentityClient.ts"
import {
  accessRevoked,
  add,
  audienceOf,
  created,
  operations,
  poll,
  publicUrl,
  push,
  receiver,
  remove,
  sessionRevoked,
  status,
  streams,
  subject,
  supported,
  verify,
} from "./StreamHandlerFixture.ts"

layer(management({ ROLES: "api" }), { excludeTestServices: true })("Streams over HTTP", (it) => {
  it.effect("metadata is at the issuer's well-known path, and each endpoint that it names exists", () =>
    Effect.gen(function* () {
      const { body, headers, status } = yield* send("GET", "/.well-known/ssf-configuration/lifecycle")
      assert.strictEqual(status, 200)
      assert.match(headers["content-type"]!, /^application\/json/)
      const at = (path: string) => `${publicUrl}${path}`
      assert.deepStrictEqual(body, {
        spec_version: "1_0",
        issuer: at("/lifecycle"),
        jwks_uri: at("/v1/lifecycle/jwks"),
        delivery_methods_supported: [push, poll],
        configuration_endpoint: at(streams),
        status_endpoint: at("/v1/lifecycle/status"),
        add_subject_endpoint: at(add),
        remove_subject_endpoint: at(remove),
        verification_endpoint: at(verify),
        critical_subject_members: ["tenant", "application"],
        authorization_schemes: [{ spec_urn: "urn:ietf:rfc:6749" }],
        default_subjects: "ALL",
      })
      assert.isNotEmpty((yield* send("GET", "/v1/lifecycle/jwks")).body.keys)
      for (const endpoint of Object.keys(body).filter((name) => name.endsWith("_endpoint"))) {
        const { pathname } = new URL(body[endpoint])
        assert.deepStrictEqual(codeOf(yield* send("POST", pathname, {}, {})), [401, "invalid_token"], endpoint)
      }
      for (const path of ["", "/", "/other", "/lifecycle/x"]) {
        assert.strictEqual((yield* send("GET", `/.well-known/ssf-configuration${path}`)).status, 404, path)
      }
    }))

  it.effect("stream control: created, read, updated, replaced, its status changed, deleted", () =>
    Effect.gen(function* () {
      const { ask, project } = yield* receiver()
      assert.deepStrictEqual(done(yield* ask("GET", streams)), [])
      const delivery = { method: push, endpoint_url: "https://receiver.example/events" }
      const asked = { delivery, events_requested: [sessionRevoked, "urn:example:unknown"], description: "First" }
      const made = yield* created({ ask }, asked)
      const { stream_id } = made
      assert.match(stream_id, /^[A-Za-z0-9._~-]+$/)
      assert.deepStrictEqual(made, {
        stream_id,
        iss: `${publicUrl}/lifecycle`,
        aud: audienceOf(project),
        ...asked,
        events_supported: supported,
        events_delivered: [sessionRevoked],
        min_verification_interval: 30,
      })
      const read = yield* ask("GET", `${streams}?stream_id=${stream_id}`)
      assert.deepStrictEqual([read.status, read.body, read.headers["cache-control"]], [200, made, "no-store"])
      assert.deepStrictEqual(done(yield* ask("GET", streams)), [made])

      const updated = done(yield* ask("PATCH", streams, { stream_id, description: "Second" }))
      assert.deepStrictEqual(updated, { ...made, description: "Second" })
      const narrowed = done(yield* ask("PATCH", streams, { stream_id, events_requested: [accessRevoked] }))
      const afterwards = { ...updated, events_requested: [accessRevoked], events_delivered: [accessRevoked] }
      assert.deepStrictEqual(narrowed, afterwards)

      const replaced = done(yield* ask("PUT", streams, { stream_id, delivery }))
      const { description: _, events_requested: __, ...bare } = afterwards
      assert.deepStrictEqual(replaced, { ...bare, events_delivered: supported })
      const polled = { method: poll, endpoint_url: `${publicUrl}${streams}/${stream_id}/poll` }
      assert.deepStrictEqual(done(yield* ask("PUT", streams, { stream_id })), { ...replaced, delivery: polled })
      assert.deepStrictEqual(done(yield* ask("GET", `${streams}?stream_id=${stream_id}`)).delivery, polled)

      const now = () => Effect.map(ask("GET", `${status}?stream_id=${stream_id}`), done)
      assert.deepStrictEqual(yield* now(), { stream_id, status: "enabled" })
      for (
        const state of [
          { stream_id, status: "paused", reason: "SYSTEM_DOWN_FOR_MAINTENANCE" },
          { stream_id, status: "disabled" },
          { stream_id, status: "enabled", reason: "" },
        ]
      ) {
        assert.deepStrictEqual(done(yield* ask("POST", status, state)), state)
        assert.deepStrictEqual(yield* now(), state)
      }

      const deleted = yield* ask("DELETE", `${streams}?stream_id=${stream_id}`)
      assert.deepStrictEqual([deleted.status, deleted.text], [204, ""])
      for (const [method, path, body] of operations(stream_id)) {
        assert.deepStrictEqual(codeOf(yield* ask(method, path, body)), [404, "not_found"], `${method} ${path}`)
      }
      assert.deepStrictEqual(done(yield* ask("GET", streams)), [])
    }))

  it.effect("a stream without delivery is polled, at an address of its own; there may be several", () =>
    Effect.gen(function* () {
      const { ask } = yield* receiver()
      const made = [
        yield* created({ ask }, { description: "one" }),
        yield* created({ ask }, undefined),
        yield* created({ ask }, { delivery: { method: poll } }),
        yield* created({ ask }, { delivery: { method: poll, endpoint_url: null } }),
      ]
      for (const { delivery, stream_id } of made) {
        assert.deepStrictEqual(delivery, { method: poll, endpoint_url: `${publicUrl}${streams}/${stream_id}/poll` })
      }
      assert.strictEqual(new Set(made.map(({ delivery }) => delivery.endpoint_url)).size, made.length)
      assert.deepStrictEqual(done(yield* ask("GET", streams)), made)
    }))

  it.effect("events of RFC 9967 are refused while a program that knows none may run, and the stream stays as it was", () =>
    Effect.gen(function* () {
      const { owner } = yield* Database
      const { ask } = yield* receiver()
      const before = yield* owner<{ min_app: number }>`select min_app from schema_meta`
      const twin = { events_requested: [scimTwins["access-revoked"]!.uri] }
      yield* owner`update schema_meta set min_app = ${knowsTwins - 1}`
      const refused = yield* ask("POST", streams, { delivery: { method: poll }, ...twin })
      assert.strictEqual(refused.status, 400)
      assert.include(refused.body.detail, "events_requested")
      // Beside its own type no twin is delivered.
      const made = yield* created({ ask }, { events_requested: [...twin.events_requested, accessRevoked] })
      assert.strictEqual((yield* ask("PATCH", streams, { stream_id: made.stream_id, ...twin })).status, 400)
      assert.deepStrictEqual(done(yield* ask("GET", streams)), [made])
      yield* owner`update schema_meta set min_app = ${knowsTwins}`
      assert.strictEqual((yield* ask("PATCH", streams, { stream_id: made.stream_id, ...twin })).status, 200)
      yield* owner`update schema_meta set min_app = ${before[0]!.min_app}`
    }))

  it.effect("event types of RFC 9967 are offered to a receiver that asks for one, in place of the event's own", () =>
    Effect.gen(function* () {
      yield* closeToOlder(knowsTwins)
      yield* (yield* Database).owner`update schema_meta set closed_at = 'epoch'`
      const { ask } = yield* receiver()
      const made = yield* created({ ask }, { events_requested: [scimTwins["access-revoked"]!.uri, sessionRevoked] })
      assert.deepStrictEqual(made.events_supported, [...supported, ...scimEvents])
      assert.deepStrictEqual(made.events_delivered, [sessionRevoked, scimTwins["access-revoked"]!.uri])
      const { stream_id } = made
      assert.deepStrictEqual(done(yield* ask("PUT", streams, made)), made)
      const both = { stream_id, events_requested: [...made.events_requested, accessRevoked] }
      assert.deepStrictEqual(
        done(yield* ask("PATCH", streams, both)).events_delivered,
        [accessRevoked, sessionRevoked]
          .sort((one, other) => supported.indexOf(one) - supported.indexOf(other)),
      )
      const { body } = yield* ask("PATCH", streams, { stream_id, events_requested: [accessRevoked] })
      assert.deepStrictEqual([body.events_supported, body.events_delivered], [supported, [accessRevoked]])
    }))

  it.effect("values that the transmitter supplies may be sent back unchanged", () =>
    Effect.gen(function* () {
      const { ask, project } = yield* receiver()
      const made = yield* created({ ask }, {
        iss: `${publicUrl}/lifecycle`,
        aud: [audienceOf(project)],
        min_verification_interval: 30,
        events_supported: [...supported].reverse(),
        events_delivered: [accessRevoked],
        events_requested: [accessRevoked],
        inactivity_timeout: 10,
        unheard_of: { deep: [] },
      })
      const { stream_id } = made
      for (const method of ["PUT", "PATCH"]) assert.deepStrictEqual(done(yield* ask(method, streams, made)), made)
      // Delivered events follow from what was requested before the change.
      const wider = { stream_id, events_requested: [accessRevoked, sessionRevoked] }
      assert.deepStrictEqual(
        codeOf(yield* ask("PATCH", streams, { ...wider, events_delivered: wider.events_requested })),
        [400, "supplied_mismatch"],
      )
      assert.strictEqual((yield* ask("PATCH", streams, { ...wider, events_delivered: [accessRevoked] })).status, 200)
      const others: Readonly<Record<string, unknown>> = {
        iss: "https://id.example/lifecycle",
        aud: audienceOf("other"),
        events_supported: supported.slice(1),
        events_delivered: [],
        min_verification_interval: 31,
      }
      for (const [name, value] of Object.entries(others)) {
        for (const method of ["PUT", "PATCH"]) {
          const answer = yield* ask(method, streams, { stream_id, [name]: value })
          assert.deepStrictEqual(codeOf(answer), [400, "supplied_mismatch"], name)
          assert.deepStrictEqual(answer.body.properties, [name])
        }
      }
      const elsewhere = { method: poll, endpoint_url: `${publicUrl}${streams}/${randomUUID()}/poll` }
      const { body } = yield* ask("PATCH", streams, { stream_id, delivery: elsewhere, iss: "x" })
      assert.deepStrictEqual(body.properties, ["iss", "delivery.endpoint_url"])
      for (const unborn of [{ stream_id }, { delivery: made.delivery }, { iss: "x" }, { events_delivered: [] }]) {
        assert.deepStrictEqual(codeOf(yield* ask("POST", streams, unborn)), [400, "supplied_mismatch"])
      }
    }))

  it.effect("a service for several projects must name one, and gets no stream of another", () =>
    Effect.gen(function* () {
      const { ask, clientId, project } = yield* receiver()
      const more = yield* scene
      yield* grant(more, clientId, ["stream.manage"])
      const audiences = [project, more.project].sort().map(audienceOf)
      const answer = yield* ask("POST", streams, {})
      assert.deepStrictEqual(codeOf(answer), [400, "audience_required"])
      assert.deepStrictEqual(answer.body.audiences, audiences)
      for (const aud of audiences) {
        assert.strictEqual((yield* created({ ask }, { aud })).aud, aud)
        assert.strictEqual((yield* created({ ask }, { aud: [aud] })).aud, aud)
      }
      const ungranted = yield* scene
      for (const aud of [audienceOf(ungranted.project), audienceOf("nothing")]) {
        assert.deepStrictEqual(codeOf(yield* ask("POST", streams, { aud })), [403, "role_required"])
      }
      for (const aud of [audiences, [], "https://receiver.example", audienceOf("")]) {
        assert.deepStrictEqual(codeOf(yield* ask("POST", streams, { aud })), [400, "supplied_mismatch"])
      }
    }))

  it.effect("an authorization header is shown to its giver, and is stored nowhere in clear text", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const { ask } = yield* receiver()
      const header = `Bearer ${randomUUID()}`
      const delivery = { method: push, endpoint_url: "https://receiver.example/", authorization_header: header }
      const { stream_id } = yield* created({ ask }, { delivery })
      const read = Effect.map(ask("GET", `${streams}?stream_id=${stream_id}`), (answer) => done(answer).delivery)
      assert.deepStrictEqual(yield* read, delivery)
      yield* ask("PATCH", streams, { stream_id, description: "kept" })
      assert.deepStrictEqual(yield* read, delivery)
      const [row] = yield* sql<{ text: string; bytes: string }>`
        select to_jsonb(t)::text as text, encode(authorization_header, 'escape') as bytes from lifecycle_streams t
        where id = ${stream_id}::uuid`
      const audits =
        yield* sql`select to_jsonb(a)::text as text from audit_records a where a.subject like ${`%${stream_id}`}`
      const { lines } = yield* Logged
      for (const text of [row!.text, row!.bytes, JSON.stringify(audits), lines.join("\n")]) {
        assert.notInclude(text, header.slice("Bearer ".length))
      }
      // A new address never gets the old one's header.
      const moved = { method: push, endpoint_url: "https://elsewhere.example/" }
      yield* ask("PATCH", streams, { stream_id, delivery: moved })
      assert.deepStrictEqual(yield* read, moved)
    }))

  it.effect("verification: once in 30 seconds a stream, and behind earlier events", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const { ask, project } = yield* receiver()
      const [one, other] = [yield* created({ ask }), yield* created({ ask })]
      const first = yield* ask("POST", verify, { stream_id: one.stream_id, state: "VGhpcyBp" })
      assert.deepStrictEqual([first.status, first.text], [204, ""])
      const again = yield* ask("POST", verify, { stream_id: one.stream_id })
      assert.deepStrictEqual(codeOf(again), [429, "rate_limited"])
      assert.match(again.headers["retry-after"]!, /^([1-9]|[12][0-9]|30)$/)
      assert.strictEqual((yield* ask("POST", verify, { stream_id: other.stream_id })).status, 204)
      const waiting = yield* sql<{ kind: string; behind: boolean; message: string }>`
        select m.kind, (m.after_epoch, m.after_position) = (h.epoch, h.position) as behind, m.message
        from lifecycle_stream_messages m join lifecycle_heads h on h.project_id = ${project}
        where m.stream_id = ${one.stream_id}::uuid`
      assert.lengthOf(waiting, 1)
      assert.deepInclude(waiting[0], { kind: "verification", behind: true })
      const { events, sub_id } = JSON.parse(
        atob(waiting[0]!.message.split(".")[1]!.replaceAll("-", "+").replaceAll("_", "/")),
      )
      assert.deepStrictEqual(sub_id, { format: "opaque", id: one.stream_id })
      assert.deepStrictEqual(Object.values(events), [{ state: "VGhpcyBp" }])
    }))

  it.effect("subjects: added 200, removed 204, without a body, for known and unknown subjects", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const { ask, owner } = yield* receiver()
      const { stream_id } = yield* created({ ask })
      const kept = Effect.map(
        sql<{ subject: unknown; included: boolean }>`
          select subject, included from lifecycle_stream_subjects where stream_id = ${stream_id}::uuid order by said`,
        (rows) => rows.map(({ included, subject }) => [subject, included]),
      )
      const known = { sub: owner, iss: "https://id.example", format: "iss_sub" }
      for (const one of [known, subject, { format: "phone", phone_number: "+12065550123" }]) {
        const removed = yield* ask("POST", remove, { stream_id, subject: one })
        assert.deepStrictEqual([removed.status, removed.text], [204, ""])
        const added = yield* ask("POST", add, { stream_id, subject: one, verified: true })
        assert.deepStrictEqual([added.status, added.text], [200, ""])
      }
      assert.deepStrictEqual(yield* kept, [])
      yield* ask("POST", remove, { stream_id, subject: known })
      yield* ask("POST", remove, { stream_id, subject })
      // The same subject with its members in another order.
      yield* ask("POST", add, { stream_id, subject: { format: "iss_sub", iss: known.iss, sub: known.sub } })
      assert.deepStrictEqual(yield* kept, [[subject, false], [known, true]])
      yield* ask("POST", add, { stream_id, subject })
      assert.deepStrictEqual(yield* kept, [])
    }))

  it.effect("a receiver's actions are in the audit under their request ids", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const { ask, clientId, project } = yield* receiver()
      const ids: Array<string> = []
      const named = () => {
        const id = randomUUID()
        ids.push(id)
        return { "x-request-id": id }
      }
      const { body } = yield* ask("POST", streams, {}, named())
      for (const [method, path, sent] of operations(body.stream_id).filter(([method]) => method !== "GET")) {
        const answer = yield* ask(method, path, sent, named())
        assert.isTrue(answer.status < 300, answer.text)
      }
      const rows = yield* sql<{ request_id: string; action: string; actor: string; subject: string; details: object }>`
        select request_id, action, actor, subject, details from audit_records
        where request_id = any(${ids.map((id) => `client:${id}`)}::text[]) order by id`
      assert.deepStrictEqual(
        rows.map(({ action, request_id }) => [ids.indexOf(request_id.replace("client:", "")), action]),
        [
          [0, "lifecycle-stream.created"],
          [1, "lifecycle-stream.changed"],
          [2, "lifecycle-stream.changed"],
          [3, "lifecycle-stream.status"],
          // The subject was not removed before, so adding it changed nothing.
          [6, "lifecycle-stream.subject-removed"],
          [7, "lifecycle-stream.deleted"],
        ],
      )
      for (const { actor, details, subject } of rows) {
        assert.match(actor, new RegExp(`^service:\\S+ ${clientId}$`))
        assert.strictEqual(subject, `lifecycle-stream:${body.stream_id}`)
        assert.deepInclude(details, { project })
      }
    }))
})
