import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { MeApi } from "../../../../schemas/api/MeApi.ts"
import { ApiKeys } from "../../../../services/accounts/ApiKeys.ts"
import { CallerAuthentication } from "../../../../services/people/CallerAuthentication.ts"
import { SessionActivity } from "../../../../services/people/SessionActivity.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import { EmbeddedIssuer } from "../../../../src/embedded/EmbeddedIssuer.ts"
import { codeOf } from "../../../support/Fixtures.ts"
import { audited } from "../../../support/Audited.ts"
import { account } from "../../../support/TestAccounts.ts"
import { TestDatabase } from "../../../support/TestDatabase.ts"
import { issuer, person, tell } from "../../../support/TestIdentity.ts"
import { bearer, serviceTokenFor, tokenFor } from "../../../support/TestTokens.ts"
import { bodyOf, call, fixture } from "../handlers/MeFixture.ts"

const gets = [
  "/v1/me",
  "/v1/me/freshness",
  "/v1/me/sessions",
  "/v1/me/authenticators",
  "/v1/me/credential-actions",
  "/v1/me/notice-settings",
]
const as = (token: string) => ({ authorization: `Bearer ${token}` })

layer(fixture(), { excludeTestServices: true })("Management", (it) => {
  it.effect("any token but an active person's management token is 401 with one and the same body", () =>
    Effect.gen(function* () {
      const { mintAccessToken, mintSession } = yield* EmbeddedIssuer
      const someone = yield* person()
      const suspended = yield* person({ status: "suspended" })
      const disabled = yield* person({ status: "disabled" })
      const key = yield* (yield* ApiKeys).create({
        accountId: yield* account({ plan: "free" }),
        plan: "free",
        platformAdmin: false,
        via: "cookie",
        keyId: null,
        authTime: null,
      }, { name: "k", permissions: ["send"] })
      const good = yield* tokenFor(someone)
      const refused: Record<string, Record<string, string>> = {
        "nothing": {},
        "another scheme": { authorization: `Basic ${btoa("a:b")}` },
        "no token": { authorization: "Bearer " },
        "two tokens": { authorization: `Bearer ${good} ${good}` },
        "two headers": { authorization: `Bearer ${good}, Bearer ${good}` },
        "a header of another name": { "x-authorization": `Bearer ${good}` },
        "a mail key": as(key.key),
        "a cookie's token": as(yield* mintSession({ accountId: someone })),
        "the token as a cookie": { cookie: `mail_session=${good}` },
        "another audience": as(yield* tokenFor(someone, { audience: "service-lifecycle" })),
        "expired": as(yield* tokenFor(someone, { ttl: "-2 minutes" })),
        "suspended": as(yield* tokenFor(suspended)),
        "disabled": as(yield* tokenFor(disabled)),
        "unknown": as(yield* mintAccessToken({ issuer, subject: "nobody", clientId: "portal" })),
        "the subject at another issuer": as(
          yield* mintAccessToken({ issuer: "https://other.example", subject: someone, clientId: "portal" }),
        ),
        "a subject that no text of a database holds": as(
          yield* mintAccessToken({ issuer, subject: "a\u0000b", clientId: "portal" }),
        ),
      }
      // A query sends the read along the ordinary path: both paths refuse alike.
      const both = Object.entries(refused).flatMap(([name, headers]) =>
        ["/v1/me", "/v1/me?ordinary"].map((path) => [`${name}, ${path}`, path, headers] as const)
      )
      for (const [name, path, headers] of both) {
        const answer = yield* call("GET", path, headers)
        assert.deepStrictEqual(codeOf(answer), [401, "invalid_token"], name)
        assert.strictEqual(answer.headers.get("www-authenticate"), `Bearer error="invalid_token"`, name)
        assert.isNotNull(answer.headers.get("x-request-id"), name)
        const { detail, status, title, type } = answer.body
        assert.deepStrictEqual({ detail, status, title, type }, {
          detail:
            "Send an access token of a configured issuer, for this service and an active person, that has not ended.",
          status: 401,
          title: "Invalid access token",
          type: "urn:bailiwick:problem:invalid_token",
        }, name)
      }
      assert.deepStrictEqual(codeOf(yield* call("GET", `/v1/me?access_token=${good}`)), [401, "invalid_token"])
      const short = yield* call("GET", "/v1/me", as(good))
      const ordinary = yield* call("GET", "/v1/me?ordinary", { authorization: `bearer ${good}` })
      assert.deepStrictEqual(bodyOf(short), bodyOf(ordinary))
      const told = ({ headers }: typeof short) =>
        [...headers].filter(([name]) => name !== "x-request-id" && name !== "date")
      assert.deepStrictEqual(told(short), told(ordinary))
      assert.strictEqual((yield* call("GET", "/v1/me", { ...as(good), accept: "text/html" })).status, 406)
      // One subject at two issuers is two people.
      const twin = yield* person({ issuer: "https://twin.example", subject: someone })
      assert.strictEqual(bodyOf(yield* call("GET", "/v1/me", as(yield* tokenFor(twin)))).person_id, twin)
      assert.strictEqual(bodyOf(short).person_id, someone)
      // And the other way round: the mail service knows no such token.
      assert.deepStrictEqual(codeOf(yield* call("GET", "/v1/api-keys/", as(good))), [401, "invalid_credentials"])
    }))

  it.effect("401 comes before validation, for every operation", () =>
    Effect.gen(function* () {
      const posts = ["/v1/me/credential-actions", "/v1/me/credential-actions/x/complete"]
      for (const path of gets) assert.deepStrictEqual(codeOf(yield* call("GET", path)), [401, "invalid_token"], path)
      for (const path of posts) {
        assert.deepStrictEqual(codeOf(yield* call("POST", path, {}, "{")), [401, "invalid_token"], path)
      }
      const put = yield* call("PUT", "/v1/me/notice-settings", {}, "{")
      assert.deepStrictEqual(codeOf(put), [401, "invalid_token"])
      assert.lengthOf(Object.keys(MeApi.endpoints), gets.length + posts.length + 1)
    }))

  it.effect("a service has no account of its own", () =>
    Effect.gen(function* () {
      const token = yield* serviceTokenFor("hr-sync")
      for (const path of gets) {
        assert.deepStrictEqual(codeOf(yield* call("GET", path, as(token))), [403, "role_required"], path)
      }
    }))

  it.effect("a merged person signs in as the other one, while that one is active", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const [old, kept] = [yield* person(), yield* person()]
      const [headers, own] = [yield* bearer(old), yield* bearer(kept)]
      assert.strictEqual(bodyOf(yield* call("GET", "/v1/me", headers)).person_id, old)
      yield* sql`update people set merged_into = ${kept} where id = ${old}`
      assert.strictEqual(bodyOf(yield* call("GET", "/v1/me", headers)).person_id, kept)
      yield* sql`update identities set person_id = ${kept} where person_id = ${old}`
      assert.strictEqual(bodyOf(yield* call("GET", "/v1/me", headers)).person_id, kept)
      // A person barred under one name may sign in under the other.
      for (const [version, status] of [[2, "disabled"], [3, "active"], [4, "suspended"], [5, "active"]] as const) {
        yield* tell("person", { id: old, version, issuer, subject: old, status })
        const expected = status === "active" ? 200 : 401
        for (const path of ["/v1/me", "/v1/me?ordinary"]) {
          assert.strictEqual((yield* call("GET", path, headers)).status, expected, status)
          assert.strictEqual((yield* call("GET", path, own)).status, 200, status)
        }
      }
      yield* sql`update people set status = 'suspended' where id = ${kept}`
      assert.deepStrictEqual(codeOf(yield* call("GET", "/v1/me", headers)), [401, "invalid_token"])
    }))

  it.effect("a failure's audit names the person, and holds no part of the token", () =>
    Effect.gen(function* () {
      const someone = yield* person()
      const token = yield* tokenFor(someone)
      const answer = yield* call("POST", "/v1/me/credential-actions", as(token), { kind: "nothing" })
      assert.strictEqual(answer.status, 422)
      const record = yield* audited(answer.headers.get("x-request-id")!)
      assert.deepInclude(record, { actor: `person:${someone}`, route: "/v1/me/credential-actions" })
      for (const part of token.split(".")) assert.notInclude(JSON.stringify(record), part)
    }))

  it.effect("a session revoked in one process is refused by every other at once", () =>
    Effect.scoped(Effect.gen(function* () {
      const { ownerUrl, url } = yield* TestDatabase
      const someone = yield* person()
      const [mine, other] = [
        yield* bearer(someone, { sid: `mine ${someone}` }),
        yield* bearer(someone, { sid: `other ${someone}` }),
      ]
      const elsewhere = yield* Layer.build(Layer.fresh(
        CallerAuthentication.layer.pipe(
          Layer.provideMerge(SessionActivity.layer),
          Layer.provide(Database.layer({ url, ownerUrl, maxConnections: 2 })),
        ),
      ))
      const there = (headers: { authorization: string }) =>
        CallerAuthentication.use(({ recognise }) =>
          recognise(headers.authorization, { userAgent: null, address: null })
        ).pipe(
          Effect.match({ onSuccess: () => "in", onFailure: ({ code }) => code }),
          Effect.provide(elsewhere),
        )
      assert.strictEqual(yield* there(other), "in")
      yield* SessionActivity.use(({ flush }) => flush).pipe(Effect.provide(elsewhere))
      const { items } = bodyOf(yield* call("GET", "/v1/me/sessions", mine))
      const id = items.find((item: { current: boolean }) => !item.current).session_id
      const start = bodyOf(
        yield* call("POST", "/v1/me/credential-actions", mine, { kind: "session.revoke", target_id: id }),
        201,
      )
      bodyOf(
        yield* call("POST", `/v1/me/credential-actions/${start.intent_id}/complete`, mine, {
          proof: { type: "confirm", acknowledged: true },
        }),
      )
      assert.strictEqual(yield* there(other), "invalid_token")
      for (const path of ["/v1/me", "/v1/me?ordinary"]) {
        assert.deepStrictEqual(codeOf(yield* call("GET", path, other)), [401, "invalid_token"])
      }
      assert.strictEqual(yield* there(mine), "in")
      const after = bodyOf(yield* call("GET", "/v1/me/sessions", mine)).items
      assert.deepStrictEqual(
        after.map((one: { current: boolean; state: string; revoked_at: string | null }) => [
          ...[one.current, one.state, one.revoked_at !== null],
        ]).toSorted(),
        [[false, "revoked", true], [true, "active", false]],
      )
      // A later token of the revoked session is refused as well, with any other claims.
      assert.strictEqual(
        yield* there(yield* bearer(someone, { sid: `other ${someone}`, acr: "urn:service:aal3" })),
        "invalid_token",
      )
    })))

  it.effect("revoking all others also ends sessions without a row yet", () =>
    Effect.gen(function* () {
      const someone = yield* person()
      const before = Math.floor(Date.now() / 1_000) - 20
      const mine = yield* bearer(someone, { sid: "mine", authTime: before })
      const unseen = yield* bearer(someone, { sid: "never seen", authTime: before })
      const silent = yield* bearer(someone, { authTime: before })
      const start = bodyOf(
        yield* call("POST", "/v1/me/credential-actions", mine, { kind: "sessions.revoke_others" }),
        201,
      )
      bodyOf(
        yield* call("POST", `/v1/me/credential-actions/${start.intent_id}/complete`, mine, {
          proof: { type: "confirm", acknowledged: true },
        }),
      )
      for (const headers of [unseen, silent]) {
        for (const path of ["/v1/me", "/v1/me?ordinary"]) {
          assert.deepStrictEqual(codeOf(yield* call("GET", path, headers)), [401, "invalid_token"])
        }
      }
      bodyOf(yield* call("GET", "/v1/me", mine))
      // Any other token of the kept session works, with any time of sign-in.
      bodyOf(yield* call("GET", "/v1/me", yield* bearer(someone, { sid: "mine", authTime: before - 60 })))
      // A new sign-in works.
      bodyOf(yield* call("GET", "/v1/me", yield* bearer(someone, { sid: "new", authTime: before + 60 })))
    }))
})

layer(fixture({ reads: 3, writes: 1 }), { excludeTestServices: true })("Management, limited", (it) => {
  it.effect("reads and writes of a principal are limited apart, before validation", () =>
    Effect.gen(function* () {
      const headers = yield* bearer(yield* person())
      for (let i = 0; i < 3; i++) bodyOf(yield* call("GET", "/v1/me", headers))
      assert.deepStrictEqual(codeOf(yield* call("GET", "/v1/me", headers)), [429, "rate_limited"])
      const limited = yield* call("GET", "/v1/me/freshness", headers)
      assert.deepStrictEqual(codeOf(limited), [429, "rate_limited"])
      const seconds = Number(limited.headers.get("retry-after"))
      assert.isTrue(seconds >= 1 && seconds <= 20, String(seconds))
      assert.strictEqual(limited.headers.get("ratelimit"), `"default";r=0;t=${seconds}`)
      assert.strictEqual(limited.headers.get("ratelimit-policy"), `"default";q=3;w=60`)
      assert.strictEqual((yield* call("POST", "/v1/me/credential-actions", headers, {})).status, 422)
      assert.deepStrictEqual(codeOf(yield* call("POST", "/v1/me/credential-actions", headers, {})), [
        429,
        "rate_limited",
      ])
      bodyOf(yield* call("GET", "/v1/me", yield* bearer(yield* person())))
    }))

  it.effect("requests beyond a limit share one record per person, instead of a write each", () =>
    Effect.gen(function* () {
      const [someone, another] = [yield* person(), yield* person()]
      const [headers, others] = [yield* bearer(someone), yield* bearer(another)]
      for (let i = 0; i < 3; i++) {
        bodyOf(yield* call("GET", "/v1/me", headers))
        bodyOf(yield* call("GET", "/v1/me", others))
      }
      const beyond = Effect.map(call("GET", "/v1/me", headers), ({ body, status }) => {
        assert.strictEqual(status, 429)
        return String(body["audit_id"])
      })
      // Two refusals a second apart may have two records; a person who goes on is recorded ever less often.
      const [one] = yield* Effect.repeat(Effect.all([beyond, beyond], { concurrency: 2 }), {
        until: ([first, second]) => first === second,
      })
      const theirs = yield* call("GET", "/v1/me", others)
      assert.notStrictEqual(theirs.body["audit_id"], one)
      const { actor } = yield* audited(String(theirs.body["request_id"]))
      assert.strictEqual(actor, `person:${another}`)
    }))
})
