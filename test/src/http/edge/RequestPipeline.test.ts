import { assert, describe, layer } from "@effect/vitest"
import { Deferred, Duration, Effect, Fiber, Stream } from "effect"
import { randomBytes } from "node:crypto"
import { AuditLog } from "../../../../services/platform/observability/AuditLog.ts"
import { Server } from "../../../../src/http/Server.ts"
import { audited } from "../../../support/Audited.ts"
import { isProblem, uuidv7 } from "./Replies.ts"
import { call, layer as serverLayer, raw, SlowHandler } from "./TestServer.ts"

const id = "0199f3a2-7c1e-7d0a-9b55-0d5c2f3e8a11"

/** A credential with a key prefix that was never used before. */
const freshPrefix = () => `mail_k_${randomBytes(4).toString("hex")}`

layer(serverLayer, { excludeTestServices: true, timeout: "2 minutes" })("the edge", (it) => {
  describe("floor codes", () => {
    it.effect("404 for an unknown path, without repeating it", () =>
      Effect.gen(function* () {
        const reply = yield* call("GET", "/v1/unknown/secret-token")
        isProblem(reply, 404, "not_found", "/{unknown}")
        assert.notInclude(reply.text, "secret-token")
      }))

    it.effect("405 with Allow", () =>
      Effect.gen(function* () {
        const reply = yield* call("PUT", `/v1/things/${id}`)
        isProblem(reply, 405, "method_not_allowed", `/v1/things/${id}`)
        assert.strictEqual(reply.headers.get("allow"), "POST, OPTIONS")
        const listed = yield* call("DELETE", "/v1/things/")
        assert.strictEqual(listed.headers.get("allow"), "GET, HEAD, OPTIONS")
      }))

    it.effect("OPTIONS names the methods and no origin", () =>
      Effect.gen(function* () {
        const reply = yield* call("OPTIONS", "/v1/things", undefined, { origin: "https://elsewhere.example" })
        assert.strictEqual(reply.status, 204)
        assert.strictEqual(reply.headers.get("allow"), "GET, HEAD, OPTIONS")
        assert.deepStrictEqual([...reply.headers.keys()].filter((name) => name.startsWith("access-control")), [])
        isProblem(yield* call("OPTIONS", "/v1/nothing"), 404, "not_found", "/{unknown}")
      }))

    it.effect("406 where Accept excludes JSON", () =>
      Effect.gen(function* () {
        for (const accept of ["text/html", "application/json;q=0", "*/*;q=0", "image/*"]) {
          isProblem(yield* call("GET", "/v1/current", undefined, { accept }), 406, "not_acceptable", "/v1/current")
        }
        for (const accept of ["*/*", "application/*", "text/html, application/json;q=0.1", "text/html,*/*;q=0.8", ""]) {
          assert.strictEqual((yield* call("GET", "/v1/current", undefined, { accept })).status, 200)
        }
      }))

    it.effect("413 by content-length", () =>
      Effect.gen(function* () {
        const reply = yield* call("POST", "/v1/strict", JSON.stringify({ name: "x".repeat(256 * 1024) }))
        isProblem(reply, 413, "body_too_large", "/v1/strict")
        const most = { name: "x".repeat(256 * 1024 - 11) }
        assert.strictEqual((yield* call("POST", "/v1/strict", most)).status, 200)
      }))

    it.effect("413 by counting a body of unknown length", () =>
      Effect.gen(function* () {
        const { port } = yield* Server
        const chunk = `4000\r\n${"x".repeat(0x4000)}\r\n`
        const head = `POST /v1/strict HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nContent-Type: application/json\r\n` +
          "Transfer-Encoding: chunked\r\n\r\n"
        const reply = yield* raw([head, ...Array.from({ length: 20 }, () => chunk)], (soFar) => soFar.includes("}"))
        assert.match(reply, /^HTTP\/1\.1 413 /)
        assert.include(reply, '"code":"body_too_large"')
      }))

    it.effect("415 for other media types, JSON with a charset is fine", () =>
      Effect.gen(function* () {
        for (const type of ["application/x-www-form-urlencoded", "text/plain", "application/xml"]) {
          const reply = yield* call("POST", "/v1/strict", "a=b", { "content-type": type })
          isProblem(reply, 415, "unsupported_media_type", "/v1/strict")
        }
        const fine = yield* call("POST", "/v1/strict", '{"name":"x"}', {
          "content-type": "Application/JSON; charset=utf-8",
        })
        assert.strictEqual(fine.status, 200)
      }))

    it.effect("421 for a foreign Host, 200 for ours", () =>
      Effect.gen(function* () {
        const { port } = yield* Server
        const get = (host: string) =>
          raw([`GET /v1/current HTTP/1.1\r\nHost: ${host}\r\n\r\n`], (soFar) => soFar.includes("}"))
        assert.match(yield* get("evil.example"), /^HTTP\/1\.1 421 /)
        assert.match(yield* get(`evil.example:${port}`), /^HTTP\/1\.1 421 /)
        assert.match(yield* get("localhost.evil.example"), /^HTTP\/1\.1 421 /)
        for (
          const host of [
            `127.0.0.1:${port}`,
            `localhost:${port}`,
            `[::1]:${port}`,
            "mail.example.com",
            "MAIL.example.com:443",
          ]
        ) {
          assert.match(yield* get(host), /^HTTP\/1\.1 200 /, host)
        }
      }))

    it.effect("429 with Retry-After and RateLimit", () =>
      Effect.gen(function* () {
        const reply = yield* call("GET", "/v1/limited")
        isProblem(reply, 429, "rate_limited", "/v1/limited")
        assert.strictEqual(reply.headers.get("retry-after"), "7")
        assert.strictEqual(reply.headers.get("ratelimit"), '"default";r=0;t=7')
        assert.strictEqual(reply.headers.get("ratelimit-policy"), '"default";q=5;w=60')
      }))

    it.effect("431 for more than 8 KiB of headers", () =>
      Effect.gen(function* () {
        const reply = yield* call("GET", "/v1/current", undefined, { "x-big": "x".repeat(8192) })
        isProblem(reply, 431, "headers_too_large", "/v1/current")
        assert.strictEqual((yield* call("GET", "/v1/current", undefined, { "x-big": "x".repeat(7000) })).status, 200)
      }))

    it.effect("500 for a defect, without its message, recorded in the audit", () =>
      Effect.gen(function* () {
        const reply = yield* call("GET", "/v1/defect")
        isProblem(reply, 500, "internal", "/v1/defect")
        assert.notInclude(reply.text, "secret detail")
        const row = yield* audited(String(reply.json["request_id"]))
        assert.strictEqual(row.id, reply.json["audit_id"])
        assert.deepInclude(row, { action: "request.failed", outcome: "failed", status: 500, code: "internal" })
      }))

    it.effect("503 while the database is away, in the audit once it is back", () =>
      Effect.gen(function* () {
        const away = Effect.map(call("GET", "/v1/away"), (reply) => {
          isProblem(reply, 503, "dependency_unavailable", "/v1/away")
          return reply.json
        })
        const [first, second] = yield* Effect.repeat(Effect.all([away, away], { concurrency: 2 }), {
          until: ([one, two]) => one["audit_id"] === two["audit_id"],
        })
        const row = yield* audited(String(second["request_id"]))
        assert.strictEqual(row.id, first["audit_id"])
        assert.deepInclude(row, { outcome: "failed", status: 503, code: "dependency_unavailable" })
      }))

    it.effect("400 for a body that is not UTF-8", () =>
      Effect.gen(function* () {
        const { url } = yield* Server
        const reply = yield* Effect.promise(() =>
          fetch(`${url}/v1/strict`, {
            method: "POST",
            headers: { "content-type": "application/json" },
            body: new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x7d]),
          }).then(async (response) => [response.status, (await response.json()).code])
        )
        assert.deepStrictEqual(reply, [400, "malformed_request"])
      }))

    it.effect("401 names its challenge", () =>
      Effect.gen(function* () {
        const reply = yield* call("GET", "/v1/who")
        isProblem(reply, 401, "invalid_credentials", "/v1/who")
        assert.strictEqual(reply.headers.get("www-authenticate"), "Bearer")
      }))
  })

  describe("every answer", () => {
    it.effect("keeps a well-formed X-Request-ID and replaces any other", () =>
      Effect.gen(function* () {
        const kept = yield* call("GET", "/v1/current", undefined, { "x-request-id": "My.id_1-2" })
        assert.strictEqual(kept.headers.get("x-request-id"), "My.id_1-2")
        assert.deepStrictEqual(kept.json, { requestId: "client:My.id_1-2", route: "/v1/current" })
        for (const sent of ["a b", "x".repeat(129), "ü", "a/b"]) {
          const reply = yield* call("GET", "/v1/none", undefined, { "x-request-id": encodeURI(sent) })
          assert.match(reply.headers.get("x-request-id") ?? "", uuidv7)
        }
      }))

    it.effect("is not stored, sniffed or framed", () =>
      Effect.gen(function* () {
        for (const path of ["/v1/current", "/v1/none", "/v1/defect"]) {
          const { headers } = yield* call("GET", path)
          assert.strictEqual(headers.get("cache-control"), "no-store")
          assert.strictEqual(headers.get("x-content-type-options"), "nosniff")
          assert.include(headers.get("content-security-policy"), "frame-ancestors 'none'")
        }
      }))

    it.effect("is the same with a slash at the end, and never a redirect", () =>
      Effect.gen(function* () {
        assert.strictEqual((yield* call("GET", "/v1/current/")).status, 200)
        assert.strictEqual((yield* call("POST", "/v1/strict/", { name: "x" })).status, 200)
      }))

    it.effect("HEAD is GET without a body", () =>
      Effect.gen(function* () {
        const reply = yield* call("HEAD", "/v1/current")
        assert.deepStrictEqual([reply.status, reply.text], [200, ""])
        assert.match(reply.headers.get("x-request-id") ?? "", uuidv7)
        assert.strictEqual((yield* call("HEAD", "/v1/none")).status, 404)
      }))

    it.effect("never shows a token of its path", () =>
      Effect.gen(function* () {
        const token = "t".repeat(43)
        const reply = yield* call("GET", `/v1/things/${id}/tokens/${token}`)
        isProblem(reply, 404, "not_found", `/v1/things/${id}/tokens/{token}`)
        const row = yield* audited(String(reply.json["request_id"]))
        assert.strictEqual(row.route, "/v1/things/{id}/tokens/{token}")
        assert.notInclude(JSON.stringify(row), token)
        isProblem(yield* call("GET", `/v1/things/foreign/tokens/x`), 404, "not_found", "/v1/things/{id}/tokens/{token}")
        isProblem(yield* call("GET", `/v1/things/a%00b/tokens/x`), 404, "not_found", "/v1/things/{id}/tokens/{token}")
      }))
  })

  describe("the audit of failed requests", () => {
    it.effect("has a row at once where the actor is known", () =>
      Effect.gen(function* () {
        const reply = yield* call("GET", `/v1/things/${id}/tokens/x`)
        const row = yield* audited(String(reply.json["request_id"]))
        assert.strictEqual(row.id, reply.json["audit_id"])
        assert.deepInclude(row, { actor: "account:me", outcome: "refused", status: 404, code: "not_found" })
        assert.include(JSON.stringify(row.details), `"127.0.0.0/24"`)
      }))

    it.effect("tells a client's own request id from ours, in records of one and of many requests", () =>
      Effect.gen(function* () {
        const { read } = yield* AuditLog
        const recorded = (requestId: string) => Effect.map(Stream.runCollect(read({ requestId })), (all) => [...all])
        const bearer = { authorization: `Bearer ${freshPrefix()}` }
        for (const [path, headers] of [[`/v1/things/${id}/tokens/x`, {}], ["/v1/who", bearer]] as const) {
          const ours = String((yield* call("GET", path, undefined, headers)).json["request_id"])
          yield* audited(ours)
          // The client sends the id of our answer as its own.
          const copied = yield* call("GET", path, undefined, { ...headers, "x-request-id": ours })
          assert.strictEqual(copied.json["request_id"], ours)
          yield* audited(`client:${ours}`)
          const ids = (yield* recorded(ours)).flatMap(({ details, request_id: id }) => details["request_ids"] ?? [id])
          assert.deepStrictEqual(ids.filter((one) => String(one).endsWith(ours)), [ours, `client:${ours}`])
          assert.lengthOf(yield* recorded(`client:${ours}`), 1)
        }
        // An id of a client never has a colon.
        const posed = yield* call("GET", "/v1/nowhere", undefined, { "x-request-id": "client:x" })
        assert.match(posed.headers.get("x-request-id") ?? "", uuidv7)
      }).pipe(Effect.provide(AuditLog.layer)))

    it.effect("gathers unrecognised requests: one row for a burst of one key's prefix", () =>
      Effect.gen(function* () {
        const [, { credential, replies, requestId }] = yield* Effect.suspend(() => {
          const credential = freshPrefix()
          const requestId = (i: number) => `${credential}-${i}`
          const headers = { authorization: `Bearer ${credential}${"x".repeat(35)}` }
          return Effect.forEach(
            Array.from({ length: 20 }, (_, i) => i),
            (i) => call("GET", "/v1/who", undefined, { ...headers, "x-request-id": requestId(i) }),
            { concurrency: 20 },
          ).pipe(Effect.map((replies) => ({ credential, replies, requestId })), Effect.timed)
          // A burst of more than a second would be several.
        }).pipe(Effect.repeat({ until: ([took]) => Duration.toMillis(took) < 900 }))
        const ids = new Set(replies.map((reply) => reply.json["audit_id"]))
        assert.strictEqual(ids.size, 1)
        const row = yield* audited(requestId(13))
        assert.isTrue(ids.has(row.id))
        assert.deepInclude(row, { actor: null, status: 401, code: "invalid_credentials" })
        assert.strictEqual(row.details.count, 20)
        assert.strictEqual(row.details.credential, credential)
        assert.deepStrictEqual(row.details.networks, ["127.0.0.0/24"])
        assert.notInclude(JSON.stringify(row), "xxxx")
        assert.strictEqual((yield* audited(requestId(0))).id, row.id)
      }))

    it.effect("records a prefix that goes on failing ever less often", () =>
      Effect.gen(function* () {
        const credential = freshPrefix()
        const refused = (requestId: string) =>
          Effect.timed(Effect.andThen(
            call("GET", "/v1/who", undefined, { authorization: `Bearer ${credential}`, "x-request-id": requestId }),
            audited(requestId),
          ))
        const [first, one] = yield* refused(`${credential}-1`)
        const [second, two] = yield* refused(`${credential}-2`)
        assert.notStrictEqual(one.id, two.id)
        assert.isAtLeast(Duration.toMillis(first), 900)
        assert.isAtLeast(Duration.toMillis(second), 1_900)
      }))

    it.effect("gathers another prefix and another route separately", () =>
      Effect.gen(function* () {
        const one = yield* call("GET", "/v1/who", undefined, { authorization: "Bearer mail_k_11111111" })
        const two = yield* call("GET", "/v1/who", undefined, { authorization: "Bearer mail_k_22222222" })
        const three = yield* call("GET", "/v1/nowhere", undefined, { authorization: "Bearer mail_k_22222222" })
        assert.strictEqual(new Set([one, two, three].map((reply) => reply.json["audit_id"])).size, 3)
      }))
  })

  describe("a client that disconnects", () => {
    it.effect("does not stop a request that changes something", () =>
      Effect.gen(function* () {
        const { started, proceed, done } = yield* SlowHandler
        const request = yield* Effect.forkChild(call("POST", "/v1/slow"))
        yield* Deferred.await(started)
        yield* Fiber.interrupt(request)
        yield* Deferred.succeed(proceed, undefined)
        yield* Deferred.await(done).pipe(Effect.timeout("60 seconds"))
      }))
  })
})
