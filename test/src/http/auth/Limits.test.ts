/** The limits of an account on the mail API, at the endpoints of its keys: hot reads, listings and changes. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Schedule } from "effect"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { randomUUID } from "node:crypto"
import { ApiKeysApi } from "../../../../schemas/api/ApiKeysApi.ts"
import { ApiKeys } from "../../../../services/accounts/ApiKeys.ts"
import { KeyUses } from "../../../../services/authentication/KeyUses.ts"
import { Principals } from "../../../../services/authentication/Principals.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import { RateLimits } from "../../../../services/platform/security/RateLimits.ts"
import { apiKeys } from "../../../../src/http/handlers/ApiKeysHandlers.ts"
import { authenticated, presented } from "../../../../src/http/auth/AccountAuth.ts"
import { RejectionAudit } from "../../../../src/http/edge/RejectionAudit.ts"
import { AccountLimits } from "../../../../src/http/auth/Limits.ts"
import { Server } from "../../../../src/http/Server.ts"
import { account, ground, sessions, signedIn } from "../../../support/TestAccounts.ts"

const publicUrl = new URL("https://mail.example")
const Api = HttpApi.make("bailiwick").add(ApiKeysApi)
const rates = { reads: 20, writes: 40 }

const served = Server.layer(
  HttpApiBuilder.layer(Api).pipe(
    Layer.provide(apiKeys),
    Layer.provide([authenticated(publicUrl), presented(publicUrl)]),
    Layer.provide(AccountLimits.layer(rates)),
  ),
  { host: "127.0.0.1", port: 0, publicUrl: publicUrl.href },
).pipe(
  Layer.provide(RejectionAudit.layer),
  Layer.provideMerge(ApiKeys.layer),
  Layer.provideMerge(Principals.layer),
  Layer.provide(KeyUses.layer),
  Layer.provide(RateLimits.layer),
  Layer.provideMerge(sessions),
  Layer.provideMerge(ground),
)

type Headers = Readonly<Record<string, string>>

const call = Effect.fnUntraced(function* (method: string, headers: Headers, body?: string, path = "/v1/api-keys/") {
  const { url } = yield* Server
  return yield* Effect.promise(async () => {
    const response = await fetch(url + path, {
      method,
      headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
      ...(body === undefined ? {} : { body }),
    })
    return { status: response.status, headers: response.headers, body: JSON.parse(await response.text() || "null") }
  })
})

const keyOf = Effect.fnUntraced(function* (id: string) {
  const { body } = yield* call("POST", yield* signedIn(id), JSON.stringify({ name: "CI" }))
  return { id: String(body.id), headers: { authorization: `Bearer ${body.key}` } }
})

const statuses = (times: number, ask: ReturnType<typeof call>) =>
  Effect.map(
    Effect.forEach(Array.from({ length: times }), () => ask),
    (answers) => answers.map(({ status }) => status),
  )

const wrong = JSON.stringify({ name: 1 })

layer(served, { excludeTestServices: true })("the limits of an account", (it) => {
  it.effect("writes count in every outcome, over all keys and sessions of an account, and for it alone", () =>
    Effect.gen(function* () {
      const id = yield* account({ plan: "business" })
      const [one, two] = [yield* keyOf(id), yield* keyOf(id)]
      const mine = [one.headers, two.headers, yield* signedIn(id)]
      // Tokens refill while a slow machine asks: the first 40 succeed in any case, later ones until none are left.
      const answers: Array<Effect.Success<ReturnType<typeof call>>> = []
      while (answers.length < 400 && answers.at(-1)?.status !== 429) {
        answers.push(yield* call("POST", mine[answers.length % 3]!, wrong))
      }
      const refused = answers.pop()
      assert.isAtLeast(answers.length, 38)
      assert.deepStrictEqual(answers.map(({ status }) => status), answers.map(() => 422))
      assert.deepInclude(refused!.body, {
        type: "urn:bailiwick:problem:rate_limited",
        status: 429,
        code: "rate_limited",
        limit: 40,
        window_seconds: 60,
      })
      assert.match(refused!.headers.get("content-type")!, /^application\/problem\+json/)
      assert.match(refused!.headers.get("retry-after")!, /^[1-9][0-9]*$/)
      assert.strictEqual(refused!.headers.get("ratelimit"), `"default";r=0;t=${refused!.headers.get("retry-after")}`)
      assert.strictEqual(refused!.headers.get("ratelimit-policy"), `"default";q=40;w=60`)
      assert.strictEqual((yield* call("GET", one.headers)).status, 200)
      const other = yield* keyOf(yield* account({ plan: "free" }))
      assert.strictEqual((yield* call("POST", other.headers, wrong)).status, 422)
      assert.strictEqual((yield* call("POST", { authorization: "Bearer mail_k_x" }, wrong)).status, 401)
      const revoked = { ...one.headers, authorization: one.headers.authorization.slice(0, -3) + "abc" }
      assert.strictEqual((yield* call("POST", revoked, wrong)).status, 401)
    }))

  it.effect("a body counts once for each 16 KiB that it begins", () =>
    Effect.gen(function* () {
      const { headers } = yield* keyOf(yield* account({ plan: "free" }))
      const long = JSON.stringify({ name: "a".repeat(250_000) })
      // 1 for the key, 16 each: the third is beyond 40.
      assert.deepStrictEqual(yield* statuses(3, call("POST", headers, long)), [422, 422, 429])
      assert.strictEqual((yield* call("POST", headers, wrong)).status, 422)
    }))

  it.effect("reads have a limit of their own, counted once on the fast path and on the ordinary one", () =>
    Effect.gen(function* () {
      const { headers } = yield* keyOf(yield* account({ plan: "free" }))
      const hot = call("GET", headers)
      // A query sends the read along the ordinary path.
      const ordinary = call("GET", headers, undefined, "/v1/api-keys/?x=1")
      const met = [...yield* statuses(10, hot), ...yield* statuses(10, ordinary)]
      assert.deepStrictEqual(met, Array(20).fill(200))
      for (const ask of [hot, ordinary]) {
        const refused = yield* ask
        assert.deepStrictEqual([refused.status, refused.body.code], [429, "rate_limited"])
        assert.strictEqual(refused.headers.get("ratelimit-policy"), `"default";q=20;w=60`)
      }
      assert.strictEqual((yield* call("POST", headers, wrong)).status, 422)
    }))

  it.effect("a read costs no write of its own: a process reserves tokens ahead", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const id = yield* account({ plan: "free" })
      const { headers } = yield* keyOf(id)
      yield* statuses(12, call("GET", headers))
      const [bucket] = yield* sql<{ level: number }>`
        select level::float8 from rate_buckets where key = ${`mail.reads:account:${id}`}`
      assert.isAtMost(bucket!.level, 9)
    }))

  it.effect("a revoked key is refused as such, and counts for no account any more", () =>
    Effect.gen(function* () {
      const id = yield* account({ plan: "starter" })
      const [one, two] = [yield* keyOf(id), yield* keyOf(id)]
      assert.deepStrictEqual(yield* statuses(2, call("GET", one.headers)), [200, 200])
      assert.strictEqual((yield* call("DELETE", two.headers, undefined, `/v1/api-keys/${one.id}`)).status, 204)
      assert.deepStrictEqual(yield* statuses(30, call("GET", one.headers)), Array(30).fill(401))
      assert.deepStrictEqual(yield* statuses(15, call("GET", two.headers)), Array(15).fill(200))
    }))

  it.effect("a request beyond a limit is audited in the account's name", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const id = yield* account({ plan: "free" })
      const { headers } = yield* keyOf(id)
      yield* statuses(20, call("GET", headers))
      const { body } = yield* call("GET", { ...headers, "x-request-id": `limited-${randomUUID()}` })
      const row = Effect.flatMap(
        sql`select actor, code from audit_records where id = ${body.audit_id}::uuid`,
        ([found]) => found === undefined ? Effect.fail("not written yet") : Effect.succeed(found),
      )
      assert.deepStrictEqual(
        yield* Effect.retry(row, { schedule: Schedule.spaced("50 millis"), times: 200 }),
        { actor: `account:${id}`, code: "rate_limited" },
      )
    }))
})
