import { assert, layer } from "@effect/vitest"
import { Clock, Effect, Layer, Schema } from "effect"
import { HttpApi, HttpApiBuilder, OpenApi } from "effect/http-api"
import { randomUUID } from "node:crypto"
import { ApiKeysApi } from "../../../../schemas/api/ApiKeysApi.ts"
import { ApiKeyView, CreatedApiKey } from "../../../../schemas/mail/ApiKey.ts"
import { ApiKeys } from "../../../../services/accounts/ApiKeys.ts"
import { KeyUses } from "../../../../services/authentication/KeyUses.ts"
import { Principals } from "../../../../services/authentication/Principals.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import { Idempotency } from "../../../../services/platform/security/Idempotency.ts"
import { apiKeys } from "../../../../src/http/handlers/ApiKeysHandlers.ts"
import { authenticated, presented } from "../../../../src/http/auth/AccountAuth.ts"
import { RejectionAudit } from "../../../../src/http/edge/RejectionAudit.ts"
import { Server } from "../../../../src/http/Server.ts"
import { codeOf } from "../../../support/Fixtures.ts"
import { audited } from "../../../support/Audited.ts"
import { vault } from "../../../support/TestVault.ts"
import { account, ground, sessions, signedIn } from "../../../support/TestAccounts.ts"

const publicUrl = new URL("https://mail.example")
const Api = HttpApi.make("bailiwick").add(ApiKeysApi)

const app = HttpApiBuilder.layer(Api).pipe(
  Layer.provide(apiKeys),
  Layer.provide([authenticated(publicUrl), presented(publicUrl)]),
)

const served = Server.layer(app, { host: "127.0.0.1", port: 0, publicUrl: publicUrl.href }).pipe(
  Layer.provide(RejectionAudit.layer),
  Layer.provideMerge(ApiKeys.layer),
  Layer.provide(Idempotency.layer.pipe(Layer.provide(vault))),
  Layer.provideMerge(Principals.layer),
  Layer.provide(KeyUses.layer),
  Layer.provideMerge(sessions),
  Layer.provideMerge(ground),
)

type Headers = Record<string, string>
interface Answer {
  readonly status: number
  readonly headers: globalThis.Headers
  readonly body: unknown
}

const call = Effect.fnUntraced(function* (method: string, path: string, headers: Headers = {}, body?: unknown) {
  const { url } = yield* Server
  return yield* Effect.promise(async (): Promise<Answer> => {
    const response = await fetch(url + path, {
      method,
      headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    return { status: response.status, headers: response.headers, body: text === "" ? null : JSON.parse(text) }
  })
})

const create = (headers: Headers) =>
  Effect.map(
    call("POST", "/v1/api-keys/", headers, { name: "CI" }),
    ({ body }) => Schema.decodeUnknownSync(CreatedApiKey)(body),
  )

layer(served, { excludeTestServices: true })("/v1/api-keys/", (it) => {
  it.effect("a repeated idempotency key makes one key, whose secret only the first answer has", () =>
    Effect.gen(function* () {
      const session = yield* signedIn(yield* account({ plan: "pro" }))
      const keyed = { ...session, "idempotency-key": "a" }
      const made = yield* call("POST", "/v1/api-keys/", keyed, { name: "CI" })
      const { key, ...shown } = Schema.decodeUnknownSync(CreatedApiKey)(made.body)
      assert.match(key!, /^mail_k_/)
      const again = yield* call("POST", "/v1/api-keys/", keyed, { name: "CI" })
      assert.deepStrictEqual([again.status, again.body], [201, { ...shown, key: null }])
      assert.strictEqual(again.headers.get("idempotency-replayed"), "true")
      const other = yield* call("POST", "/v1/api-keys/", keyed, { name: "Other" })
      assert.deepStrictEqual(codeOf(other), [409, "idempotency_key_reused"])
      const list = yield* call("GET", "/v1/api-keys/", session)
      assert.deepStrictEqual(
        Schema.decodeUnknownSync(Schema.Array(ApiKeyView))(list.body).map(({ id }) => id),
        [shown.id],
      )
      const { sql } = yield* Database
      assert.deepStrictEqual(yield* sql`select from idempotency_receipts where body like ${`%${key}%`}`, [])
      const audited = yield* sql`select action from audit_records where subject = ${`api-key:${shown.id}`}`
      assert.deepStrictEqual(audited, [{ action: "api-key.created" }])
    }))

  it.effect("keys are created, listed and revoked, by cookie and by key, with and without the slash", () =>
    Effect.gen(function* () {
      const session = yield* signedIn(yield* account({ plan: "pro" }))
      const made = yield* call("POST", "/v1/api-keys", session, { name: "CI", permissions: ["send", "send"], more: 1 })
      assert.strictEqual(made.status, 201)
      const { key, id } = Schema.decodeUnknownSync(CreatedApiKey)(made.body)
      const byKey = { authorization: `Bearer ${key}` }
      for (const path of ["/v1/api-keys/", "/v1/api-keys"]) {
        const list = yield* call("GET", path, byKey)
        assert.strictEqual(list.status, 200)
        assert.match(list.headers.get("content-type")!, /^application\/json/)
        assert.deepStrictEqual(
          Schema.decodeUnknownSync(Schema.Array(ApiKeyView))(list.body).map(({ id }) => id),
          [id],
        )
        assert.notInclude(JSON.stringify(list.body), key!.slice(15))
      }
      const gone = yield* call("DELETE", `/v1/api-keys/${id}/`, byKey)
      assert.deepStrictEqual([gone.status, gone.body], [204, null])
      assert.deepStrictEqual(codeOf(yield* call("GET", "/v1/api-keys/", byKey)), [401, "invalid_credentials"])
      assert.strictEqual((yield* call("DELETE", `/v1/api-keys/${id}`, session)).status, 204)
      assert.deepStrictEqual((yield* call("GET", "/v1/api-keys/", session)).body, [])
    }))

  it.effect("every bad credential is the same 401 with its challenge, before any validation", () =>
    Effect.gen(function* () {
      const unknown = yield* signedIn(randomUUID())
      const forged = { cookie: `${(yield* signedIn(randomUUID())).cookie}x` }
      const cases: ReadonlyArray<Headers> = [
        {},
        { authorization: `Bearer mail_k_${"0".repeat(43)}` },
        { authorization: "Bearer eyJhbGciOiJFUzI1NiJ9.e30.x" },
        { authorization: "Basic YTpi" },
        { cookie: "mail_session=" },
        unknown,
        forged,
      ]
      for (const headers of cases) {
        for (
          const answer of [
            yield* call("GET", "/v1/api-keys/", headers),
            yield* call("POST", "/v1/api-keys/", headers, { permissions: [] }),
            yield* call("DELETE", "/v1/api-keys/no-uuid", headers),
          ]
        ) {
          assert.deepStrictEqual(codeOf(answer), [401, "invalid_credentials"], JSON.stringify(headers))
          assert.strictEqual(answer.headers.get("www-authenticate"), "Bearer")
          assert.strictEqual(answer.headers.get("content-type"), "application/problem+json")
        }
      }
    }))

  it.effect("the Authorization header decides, also beside a good cookie", () =>
    Effect.gen(function* () {
      const session = yield* signedIn(yield* account({ plan: "free" }))
      const other = yield* create(yield* signedIn(yield* account({ plan: "free" })))
      const both = (authorization: string) => call("GET", "/v1/api-keys/", { ...session, authorization })
      assert.deepStrictEqual(codeOf(yield* both(`Bearer mail_k_${"0".repeat(43)}`)), [401, "invalid_credentials"])
      const list = yield* both(`Bearer ${other.key}`)
      assert.deepStrictEqual((list.body as ReadonlyArray<{ id: string }>).map(({ id }) => id), [other.id])
    }))

  it.effect("a disabled account is 401 by key and by cookie", () =>
    Effect.gen(function* () {
      const id = yield* account({ plan: "free" })
      const session = yield* signedIn(id)
      const { key } = yield* create(session)
      const { sql } = yield* Database
      yield* sql`update accounts set status = 'disabled' where id = ${id}::uuid`
      for (const headers of [session, { authorization: `Bearer ${key}` }]) {
        assert.deepStrictEqual(codeOf(yield* call("GET", "/v1/api-keys/", headers)), [401, "invalid_credentials"])
        assert.deepStrictEqual(
          codeOf(yield* call("POST", "/v1/api-keys/", headers, { name: "x" })),
          [401, "invalid_credentials"],
        )
      }
    }))

  it.effect("CSRF: a foreign origin is refused by cookie, after 401 and before 422, and never by key", () =>
    Effect.gen(function* () {
      const session = yield* signedIn(yield* account({ plan: "free" }))
      const foreign = { origin: "https://evil.example" }
      const refused = yield* call("POST", "/v1/api-keys/", { ...session, ...foreign }, { permissions: [] })
      assert.deepStrictEqual(codeOf(refused), [403, "csrf_rejected"])
      assert.strictEqual((yield* call("POST", "/v1/api-keys/", foreign, {})).status, 401)
      const own = yield* call("POST", "/v1/api-keys/", { ...session, origin: "https://mail.example" }, { name: "a" })
      assert.strictEqual(own.status, 201)
      const { key } = Schema.decodeUnknownSync(CreatedApiKey)(own.body)
      const byKey = { authorization: `Bearer ${key}`, ...foreign }
      assert.strictEqual((yield* call("POST", "/v1/api-keys/", byKey, { name: "b" })).status, 201)
      assert.strictEqual((yield* call("GET", "/v1/api-keys/", { ...session, ...foreign })).status, 200)
    }))

  it.effect("422 names every fault", () =>
    Effect.gen(function* () {
      const session = yield* signedIn(yield* account({ plan: "free" }))
      const faults = Effect.fnUntraced(function* (body: unknown) {
        const answer = yield* call("POST", "/v1/api-keys/", session, body)
        assert.strictEqual(answer.status, 422)
        return (answer.body as { detail: ReadonlyArray<{ loc: unknown; type: string }> }).detail
          .map(({ loc, type }) => [loc, type])
      })
      assert.deepStrictEqual(yield* faults({ permissions: ["send", "read"] }), [
        [["body", "name"], "missing"],
        [["body", "permissions", 1], "literal_error"],
      ])
      assert.deepStrictEqual(yield* faults({ name: "", permissions: [] }), [
        [["body", "name"], "string_too_short"],
        [["body", "permissions"], "too_short"],
      ])
      assert.deepStrictEqual(yield* faults({ name: "\u{1f511}".repeat(201) }), [[["body", "name"], "string_too_long"]])
      assert.deepStrictEqual(yield* faults({ name: "a\nb" }), [[["body", "name"], "value_error"]])
      const named = yield* call("POST", "/v1/api-keys/", session, { name: "a\tb" })
      assert.deepStrictEqual(named.body, {
        detail: [{
          type: "value_error",
          loc: ["body", "name"],
          input: "a\tb",
          ctx: { error: {} },
          msg: "Value error, leave out control characters, such as tabs and line breaks",
        }],
      })
      const id = yield* call("DELETE", "/v1/api-keys/no-uuid", session)
      const [fault] = (id.body as { detail: ReadonlyArray<{ loc: unknown; type: string }> }).detail
      assert.deepStrictEqual([id.status, fault?.type, fault?.loc], [422, "uuid_parsing", ["path", "key_id"]])
    }))

  it.effect("an unknown id of any version and another account's key are 404", () =>
    Effect.gen(function* () {
      const session = yield* signedIn(yield* account({ plan: "free" }))
      const theirs = yield* create(yield* signedIn(yield* account({ plan: "free" })))
      for (const id of [randomUUID(), "11111111-1111-1111-1111-111111111111", theirs.id]) {
        assert.deepStrictEqual(codeOf(yield* call("DELETE", `/v1/api-keys/${id}`, session)), [404, "not_found"])
      }
    }))

  it.effect("403 api_key_limit at the plan's limit", () =>
    Effect.gen(function* () {
      const session = yield* signedIn(yield* account({ plan: "free" }))
      yield* create(session)
      yield* create(session)
      assert.deepStrictEqual(
        codeOf(yield* call("POST", "/v1/api-keys/", session, { name: "third" })),
        [403, "api_key_limit"],
      )
    }))

  it.effect("a failed request's audit names the recognised account", () =>
    Effect.gen(function* () {
      const id = yield* account({ plan: "free" })
      const session = yield* signedIn(id)
      const requestId = `test-${yield* Clock.currentTimeMillis}`
      yield* call("DELETE", `/v1/api-keys/${randomUUID()}`, { ...session, "x-request-id": requestId })
      assert.deepInclude(yield* audited(requestId), { actor: `account:${id}`, code: "not_found" })
    }))

  it("the document has both schemes and the specification's slash", () => {
    const document = OpenApi.fromApi(Api)
    assert.deepStrictEqual(Object.keys(document.paths), ["/v1/api-keys/", "/v1/api-keys/{key_id}"])
    assert.deepStrictEqual(document.paths["/v1/api-keys/"]!.get!.security, [{ bearer: [] }, { cookie: [] }])
    assert.strictEqual(document.components.securitySchemes["cookie"]!.type, "apiKey")
  })
})
