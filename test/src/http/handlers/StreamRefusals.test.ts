/**
 * The negative transmitter modules of the OpenID conformance suite for the management of streams, for every operation.
 */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import { randomUUID } from "node:crypto"
import { Api } from "../../../../schemas/api/Api.ts"
import { ServiceGrants } from "../../../../services/access/ServiceGrants.ts"
import { run } from "../../../../services/platform/database/UnitOfWork.ts"
import { document } from "../../../../src/http/docs/Document.ts"
import type { Server } from "../../../../src/http/Server.ts"
import { codeOf } from "../../../support/Fixtures.ts"
import { runs } from "../../../support/Runs.ts"
import { person } from "../../../support/TestIdentity.ts"
import { management } from "../../../support/TestManagement.ts"
import { serviceTokenFor, tokenFor } from "../../../support/TestTokens.ts"
import { done, type Headers, send } from "../identity/IdentityClient.ts"
import {
  add,
  audience,
  bearer,
  created,
  operations,
  push,
  receiver,
  remove,
  status,
  streams,
  subject,
  verify,
} from "./StreamHandlerFixture.ts"

layer(management({ ROLES: "api" }), { excludeTestServices: true })("Refusals of stream management", (it) => {
  it.effect("a request without a token of the audience is 401, also with a good one in another place", () =>
    Effect.gen(function* () {
      const { ask, clientId, token } = yield* receiver()
      const { stream_id } = yield* created({ ask })
      const wrong: Readonly<Record<string, Headers>> = {
        none: {},
        invalid: bearer(`${token}x`),
        management: bearer(yield* serviceTokenFor(clientId)),
        person: bearer(yield* tokenFor(yield* person(), { audience })),
        basic: { authorization: `Basic ${btoa(`${clientId}:x`)}` },
      }
      for (const [method, path, body] of [...operations(stream_id), ["POST", streams, {}], ["GET", streams]] as const) {
        for (const [name, headers] of Object.entries(wrong)) {
          const answer = yield* send(method, path, headers, body)
          assert.deepStrictEqual(codeOf(answer), [401, "invalid_token"], `${method} ${path} ${name}`)
          assert.match(answer.headers["www-authenticate"]!, /^Bearer/)
        }
        const inQuery = `${path}${path.includes("?") ? "&" : "?"}access_token=${token}`
        assert.strictEqual((yield* send(method, inQuery, {}, body)).status, 401, `${method} ${path}`)
      }
      assert.strictEqual((yield* ask("GET", `${streams}?stream_id=${stream_id}`)).status, 200)
    }))

  it.effect("a service without the capability is 403 with the reason, also after a revocation", () =>
    Effect.gen(function* () {
      const had = yield* receiver()
      const { stream_id } = yield* created(had)
      const { revoke } = yield* ServiceGrants
      const { administrator, grantId, project } = had
      yield* run(revoke({ personId: administrator, projectId: project, grantId, reason: "over and out" }))
      const never = yield* receiver(["events.read", "snapshot.read", "cursor.acknowledge"])
      for (const { ask } of [had, never]) {
        for (
          const [method, path, body] of [...operations(stream_id), ["POST", streams, {}], ["GET", streams]] as const
        ) {
          const answer = yield* ask(method, path, body)
          assert.deepStrictEqual(codeOf(answer), [403, "role_required"], `${method} ${path}`)
          assert.strictEqual(answer.body.instance, path.split("?")[0])
          assert.strictEqual(
            answer.headers["www-authenticate"],
            `Bearer error="insufficient_scope", scope="stream.manage"`,
          )
        }
      }
    }))

  it.effect("unknown streams and those of others are 404, and stay unchanged", () =>
    Effect.gen(function* () {
      const [mine, theirs] = [yield* receiver(), yield* receiver()]
      yield* created(mine)
      const other = yield* created(theirs)
      for (const id of [randomUUID(), other.stream_id, "dummy", "", "%00"]) {
        for (const [method, path, body] of operations(id)) {
          assert.strictEqual(
            (yield* mine.ask(method, path, body)).status,
            path.includes("%00") ? 400 : 404,
            `${method} ${path}`,
          )
        }
      }
      assert.deepStrictEqual(done(yield* theirs.ask("GET", `${streams}?stream_id=${other.stream_id}`)), other)
      assert.lengthOf(done(yield* mine.ask("GET", streams)), 1)
    }))

  it.effect("unreadable bodies and queries are 400, and are not repeated", () =>
    Effect.gen(function* () {
      const { ask } = yield* receiver()
      const { stream_id } = yield* created({ ask })
      const json = { "content-type": "application/json" }
      for (
        const [method, path] of [
          ["POST", streams],
          ["PATCH", streams],
          ["PUT", streams],
          ["POST", status],
          [
            "POST",
            verify,
          ],
          ["POST", add],
          ["POST", remove],
        ] as const
      ) {
        for (const broken of ["{ broken", ";{ broken", `{"stream_id": `, "[]", `"x"`, "\u00e9{"]) {
          const answer = yield* ask(method, path, broken, json)
          assert.deepStrictEqual(codeOf(answer), [400, "malformed_request"], `${method} ${path} ${broken}`)
          assert.match(answer.headers["content-type"]!, /^application\/problem\+json/)
        }
      }
      const refused = Effect.fnUntraced(function* (method: string, path: string, body?: unknown) {
        const answer = yield* ask(method, path, body)
        assert.strictEqual(answer.status, 400, `${method} ${path} ${JSON.stringify(body)} ${answer.text}`)
        return answer
      })
      for (const body of [undefined, {}, { stream_id: 1 }, { stream_id: null }]) {
        for (const [method, path] of [["PATCH", streams], ["PUT", streams], ["POST", verify]] as const) {
          yield* refused(method, path, body)
        }
      }
      for (const state of [{ stream_id }, { stream_id, status: "off" }, { stream_id, status: "paused", reason: 1 }]) {
        yield* refused("POST", status, state)
      }
      for (const path of [add, remove]) {
        for (const wrong of [undefined, "x", {}, { format: "email" }, { format: "opaque", id: "1", more: "x" }]) {
          yield* refused("POST", path, { stream_id, ...(wrong === undefined ? {} : { subject: wrong }) })
        }
      }
      yield* refused("POST", add, { stream_id, subject, verified: "yes" })
      yield* refused("GET", status)
      yield* refused("DELETE", streams)
      const long = { description: "é".repeat(1_001) }
      for (
        const wrong of [
          ...[long, { description: null }, { events_requested: "x" }, { events_requested: [1] }],
          { events_requested: Array.from({ length: 101 }, (_, i) => `urn:example:${i}`) },
          ...[{ delivery: "push" }, { delivery: {} }, { delivery: { method: "urn:ietf:rfc:9999" } }],
          ...[{ delivery: { method: push } }, { delivery: { method: push, endpoint_url: "" } }],
        ]
      ) {
        yield* refused("POST", streams, wrong)
        yield* refused("PATCH", streams, { stream_id, ...wrong })
      }
      const secret = {
        method: push,
        endpoint_url: "https://receiver.example/",
        authorization_header: "Bearer s3cret\n",
      }
      const { text } = yield* refused("POST", streams, { delivery: secret })
      assert.notInclude(text, "s3cret")
      assert.lengthOf([
        ...done(yield* ask("PATCH", streams, { stream_id, description: "é".repeat(1_000) })).description,
      ], 1_000)
      assert.lengthOf(done(yield* ask("GET", streams)), 1)
    }))

  it.effect("any body is accepted or refused, without a fault", () =>
    Effect.gen(function* () {
      const made = yield* receiver()
      const { stream_id } = yield* created(made)
      const field = fc.constantFrom(
        ...["delivery", "events_requested", "description", "iss", "aud", "events_supported", "events_delivered"],
        ...["min_verification_interval", "status", "reason", "state", "subject", "verified", "__proto__", "format"],
      )
      const subjects = fc.dictionary(
        fc.constantFrom("format", "user", "id", "identifiers", "constructor"),
        fc.jsonValue(),
      )
      const bodies = fc.tuple(fc.dictionary(field, fc.oneof(fc.jsonValue(), subjects), { maxKeys: 5 }), fc.boolean())
        .map(([body, named]) => JSON.stringify(named ? { ...body, stream_id } : body))
      const places = fc.constantFrom(
        ...[["POST", streams], ["PATCH", streams], ["PUT", streams], ["POST", status], ["POST", verify]] as const,
        ...[["POST", add], ["POST", remove]] as const,
      )
      const promised = Effect.runPromiseWith(yield* Effect.context<Server>())
      const property = fc.asyncProperty(places, bodies, async ([method, path], body) => {
        const answer = await promised(made.ask(method, path, body, { "content-type": "application/json" }))
        assert.include([200, 201, 204, 400, 409, 429], answer.status, `${method} ${path} ${body} ${answer.text}`)
      })
      yield* Effect.promise(() => fc.assert(property, { numRuns: runs(100), endOnFailure: true }))
    }))

  it.effect("pushes go to public https addresses only, for every caller", () =>
    Effect.gen(function* () {
      const { ask } = yield* receiver()
      const { stream_id } = yield* created({ ask })
      for (
        const endpoint_url of [
          ...[
            "not a url",
            "ftp://receiver.example/",
            "http://receiver.example/",
            "https://user:pass@receiver.example/",
          ],
          ...[
            "https://10.0.0.1/",
            "https://192.168.1.1/",
            "https://169.254.169.254/latest/meta-data",
            "https://[fe80::1]/",
          ],
          ...["https://receiver.example:22/", `https://receiver.example/${"x".repeat(2_048)}`],
        ]
      ) {
        const delivery = { method: push, endpoint_url }
        for (const [method, body] of [["POST", { delivery }], ["PATCH", { stream_id, delivery }]] as const) {
          const answer = yield* ask(method, streams, body)
          assert.deepStrictEqual(codeOf(answer), [400, "malformed_request"], endpoint_url)
          assert.include(answer.body.detail, "endpoint_url")
          const more = yield* ask(method, streams, { ...body, description: 5 })
          assert.match(String(more.body.detail), /endpoint_url: .*; body\.description: /, "beside all other faults")
        }
      }
    }))

  it.effect("the document names exactly the possible answers", () =>
    Effect.sync(() => {
      const { paths } = document(Api) as { readonly paths: Record<string, Record<string, { responses: object }>> }
      const always = ["403", "404", "default"]
      const expected: ReadonlyArray<readonly [string, string, ReadonlyArray<string>]> = [
        [streams, "post", ["201", "400", "403", "409", "503", "default"]],
        [streams, "get", ["200", ...always]],
        [streams, "patch", ["200", "400", ...always, "503"]],
        [streams, "put", ["200", "400", ...always, "503"]],
        [streams, "delete", ["204", ...always]],
        [status, "get", ["200", ...always]],
        [status, "post", ["200", ...always, "503"]],
        [verify, "post", ["204", ...always]],
        [add, "post", ["200", ...always]],
        [remove, "post", ["204", ...always]],
        ["/.well-known/ssf-configuration/lifecycle", "get", ["200", "4XX", "default"]],
      ]
      for (const [path, method, statuses] of expected) {
        assert.sameMembers(Object.keys(paths[path]![method]!.responses), [...statuses], `${method} ${path}`)
      }
    }))
})
