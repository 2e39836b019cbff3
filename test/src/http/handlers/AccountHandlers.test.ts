import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { randomUUID } from "node:crypto"
import { AccountApi } from "../../../../schemas/api/AccountApi.ts"
import { AccountView, DomainPage, DomainView, WorkspacePage } from "../../../../schemas/mail/AccountView.ts"
import { AccountReads } from "../../../../services/accounts/AccountReads.ts"
import { ApiKeys } from "../../../../services/accounts/ApiKeys.ts"
import { authenticated } from "../../../../src/http/auth/AccountAuth.ts"
import { RejectionAudit } from "../../../../src/http/edge/RejectionAudit.ts"
import { account } from "../../../../src/http/handlers/AccountHandlers.ts"
import { Server } from "../../../../src/http/Server.ts"
import { domain, footing, person } from "../../../services/transfers/TransferFixture.ts"
import { codeOf } from "../../../support/Fixtures.ts"
import { sessions, signedIn } from "../../../support/TestAccounts.ts"

const publicUrl = new URL("https://mail.example")
const Api = HttpApi.make("bailiwick").add(AccountApi)

const app = HttpApiBuilder.layer(Api).pipe(Layer.provide(account), Layer.provide(authenticated(publicUrl)))

const served = Server.layer(app, { host: "127.0.0.1", port: 0, publicUrl: publicUrl.href }).pipe(
  Layer.provide(RejectionAudit.layer),
  Layer.provideMerge(Layer.merge(AccountReads.layer({ webhooksPerAccount: 100 }), ApiKeys.layer)),
  Layer.provideMerge(footing),
  Layer.provideMerge(sessions),
)

const get = Effect.fnUntraced(function* (path: string, headers: Record<string, string> = {}) {
  const { url } = yield* Server
  return yield* Effect.promise(async () => {
    const response = await fetch(url + path, { headers })
    return { status: response.status, headers: response.headers, body: await response.json() as unknown }
  })
})

const paths = ["/v1/account", "/v1/workspaces", "/v1/domains", `/v1/domains/${randomUUID()}`]

layer(served, { excludeTestServices: true, timeout: "2 minutes" })("the account's own reads", (it) => {
  it.effect("account, workspaces and domains are read by cookie and by key, with and without the slash", () =>
    Effect.gen(function* () {
      const alice = yield* person({ plan: "starter" })
      const id = yield* domain(alice)
      const { key } = yield* (yield* ApiKeys).create(
        { accountId: alice.id, plan: "starter", platformAdmin: false, via: "cookie", keyId: null, authTime: null },
        { name: "CI", permissions: ["send"] },
      )
      for (const headers of [{ authorization: `Bearer ${key}` }, yield* signedIn(alice.id)]) {
        const own = yield* get("/v1/account", headers)
        assert.strictEqual(own.status, 200)
        assert.strictEqual(own.headers.get("cache-control"), "no-store")
        assert.deepInclude(Schema.decodeUnknownSync(AccountView)(own.body), {
          id: alice.id,
          api_keys: { used: 1, limit: 5 },
        })
        const workspaces = Schema.decodeUnknownSync(WorkspacePage)((yield* get("/v1/workspaces/", headers)).body)
        assert.deepStrictEqual(workspaces.items.map((one) => one.id), [alice.workspaceId])
        const domains = Schema.decodeUnknownSync(DomainPage)((yield* get("/v1/domains?limit=1", headers)).body)
        assert.deepStrictEqual([domains.items.map((one) => one.id), domains.next_after_id], [[id], null])
        const read = yield* get(`/v1/domains/${id}/`, headers)
        assert.deepStrictEqual(Schema.decodeUnknownSync(DomainView)(read.body), domains.items[0])
        assert.deepStrictEqual((yield* get(`/v1/domains?after_id=${id}`, headers)).body, {
          items: [],
          next_after_id: null,
        })
      }
    }))

  it.effect("a platform administrator finds any domain by its name, in a session alone", () =>
    Effect.gen(function* () {
      const [alice, carol] = [yield* person(), yield* person({ platform_admin: true })]
      const id = yield* domain(alice)
      const path = `/v1/domains?name=d-${id.slice(0, 8)}.example`
      const { key } = yield* (yield* ApiKeys).create(
        { accountId: carol.id, plan: "starter", platformAdmin: true, via: "cookie", keyId: null, authTime: null },
        { name: "CI", permissions: ["send"] },
      )
      const found = Effect.fnUntraced(function* (headers: Record<string, string>) {
        return Schema.decodeUnknownSync(DomainPage)((yield* get(path, headers)).body).items.map((one) => one.id)
      })
      assert.deepStrictEqual(yield* found(yield* signedIn(alice.id)), [id])
      assert.deepStrictEqual(yield* found(yield* signedIn(carol.id)), [id])
      assert.deepStrictEqual(yield* found({ authorization: `Bearer ${key}` }), [])
      assert.deepStrictEqual(yield* found(yield* signedIn((yield* person()).id)), [])
    }))

  it.effect("without a good credential everything is 401, before any validation", () =>
    Effect.gen(function* () {
      for (const headers of [{}, { authorization: `Bearer mail_k_${"0".repeat(43)}` }, yield* signedIn(randomUUID())]) {
        for (const path of [...paths, "/v1/domains?limit=x"]) {
          assert.deepStrictEqual(codeOf(yield* get(path, headers)), [401, "invalid_credentials"], path)
        }
      }
    }))

  it.effect("a page's bounds are 422; another account's domain is answered as one that does not exist", () =>
    Effect.gen(function* () {
      const [alice, bob] = [yield* person(), yield* person()]
      const session = yield* signedIn(bob.id)
      for (const path of ["/v1/workspaces", "/v1/domains"]) {
        const { body, status } = yield* get(`${path}?limit=101&after_id=x`, session)
        assert.strictEqual(status, 422)
        const { detail } = body as { readonly detail: ReadonlyArray<{ readonly loc: unknown; readonly type: string }> }
        assert.deepStrictEqual(detail.map(({ loc, type }) => [loc, type]), [
          [["query", "limit"], "less_than_equal"],
          [["query", "after_id"], "uuid_parsing"],
        ])
      }
      for (const id of [yield* domain(alice), randomUUID(), "x"]) {
        assert.deepStrictEqual(codeOf(yield* get(`/v1/domains/${id}`, session)), [404, "not_found"])
      }
    }))
})
