/** The security scheme `Presented`, in a contract of its own: what it gives a handler, and the order of refusals. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { HttpApi, HttpApiBuilder, HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { randomUUID } from "node:crypto"
import { Credential, Presented } from "../../../../schemas/api/CredentialsApi.ts"
import { RequestValidation } from "../../../../schemas/api/RequestValidation.ts"
import { InvalidCredentials, NotFound } from "../../../../schemas/problems/HttpProblems.ts"
import { QueryInt } from "../../../../schemas/Validation/Scalars.ts"
import { KeyUses } from "../../../../services/authentication/KeyUses.ts"
import { Principals } from "../../../../services/authentication/Principals.ts"
import { authenticated, presented } from "../../../../src/http/auth/AccountAuth.ts"
import { RejectionAudit } from "../../../../src/http/edge/RejectionAudit.ts"
import { Server } from "../../../../src/http/Server.ts"
import { audited } from "../../../support/Audited.ts"
import { account, ground, sessions, signedIn } from "../../../support/TestAccounts.ts"

const publicUrl = new URL("https://mail.example")

class Things extends HttpApiGroup.make("things").add(
  HttpApiEndpoint.get("list", "/v1/things", {
    query: { limit: QueryInt({ min: 1 }) },
    success: Schema.Struct({ via: Schema.String }),
    error: [InvalidCredentials, NotFound],
  }),
  HttpApiEndpoint.post("change", "/v1/things", {
    payload: Schema.Struct({ name: Schema.String }),
    success: Schema.Struct({ via: Schema.String }),
    error: InvalidCredentials,
  }),
).middleware(RequestValidation).middleware(Presented) {}
const Api = HttpApi.make("credentials").add(Things)

const handlers = HttpApiBuilder.group(
  Api,
  "things",
  Effect.fn(function* (handlers) {
    const principals = yield* Principals
    const answer = Effect.fnUntraced(function* () {
      const { via } = yield* principals.authenticate(yield* Credential)
      return { via }
    })
    return handlers.handleAll({
      list: ({ query }) => query.limit === 404 ? Effect.fail(new NotFound()) : answer(),
      change: answer,
    })
  }),
)

const served = Server.layer(
  HttpApiBuilder.layer(Api).pipe(
    Layer.provide(handlers),
    Layer.provide([authenticated(publicUrl), presented(publicUrl)]),
  ),
  { host: "127.0.0.1", port: 0, publicUrl: publicUrl.href },
).pipe(
  Layer.provide(RejectionAudit.layer),
  Layer.provide(Principals.layer),
  Layer.provide(KeyUses.layer),
  Layer.provideMerge(sessions),
  Layer.provideMerge(ground),
)

const call = Effect.fnUntraced(
  function* (method: string, query: string, headers: Record<string, string>, body?: string) {
    const { url } = yield* Server
    return yield* Effect.promise(async () => {
      const response = await fetch(`${url}/v1/things${query}`, {
        method,
        headers: { "content-type": "application/json", ...headers },
        ...(body === undefined ? {} : { body }),
      })
      const answer = await response.json() as { readonly code?: string; readonly via?: string }
      return [response.status, answer.via ?? answer.code]
    })
  },
)

layer(served, { excludeTestServices: true })("Presented", (it) => {
  it.effect("a failure after a good credential is audited in the account's name", () =>
    Effect.gen(function* () {
      const id = yield* account({ plan: "free" })
      const headers = { ...(yield* signedIn(id)), "x-request-id": `failure-${id}` }
      assert.deepStrictEqual(yield* call("GET", "?limit=404", headers), [404, "not_found"])
      assert.strictEqual((yield* audited(`failure-${id}`)).actor, `account:${id}`)
    }))

  it.effect("a good credential reaches the handler, and gets the faults of its request", () =>
    Effect.gen(function* () {
      const good = yield* signedIn(yield* account({ plan: "free" }))
      assert.deepStrictEqual(yield* call("GET", "?limit=1", good), [200, "cookie"])
      assert.deepStrictEqual(yield* call("GET", "?limit=0", good), [422, undefined])
      assert.deepStrictEqual(yield* call("POST", "", good, "{}"), [422, undefined])
    }))

  it.effect("a bad credential is 401 before 422, without the handler", () =>
    Effect.gen(function* () {
      const unknown = yield* signedIn(randomUUID())
      const key = { authorization: `Bearer mail_k_${"0".repeat(43)}` }
      for (const headers of [unknown, key, { ...key, ...(yield* signedIn(yield* account({ plan: "free" }))) }]) {
        assert.deepStrictEqual(yield* call("GET", "?limit=1", headers), [401, "invalid_credentials"])
        assert.deepStrictEqual(yield* call("GET", "?limit=0", headers), [401, "invalid_credentials"])
        assert.deepStrictEqual(yield* call("POST", "", headers, "{"), [401, "invalid_credentials"])
      }
    }))

  it.effect("a foreign origin is 403 after 401 and before 422", () =>
    Effect.gen(function* () {
      const foreign = { origin: "https://evil.example" }
      const good = { ...(yield* signedIn(yield* account({ plan: "free" }))), ...foreign }
      const unknown = { ...(yield* signedIn(randomUUID())), ...foreign }
      assert.deepStrictEqual(yield* call("POST", "", good, "{}"), [403, "csrf_rejected"])
      assert.deepStrictEqual(yield* call("POST", "", unknown, "{}"), [401, "invalid_credentials"])
      assert.deepStrictEqual(yield* call("GET", "?limit=1", good), [200, "cookie"])
    }))
})
