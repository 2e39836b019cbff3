/** The ends of a console session: by time, by sign-out here and everywhere, and by what ends a person's other sessions. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { pruneConsoleSessions } from "../../../../services/console/ConsoleSessions.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import { demoIds } from "../../../../src/embedded/DemoDirectory.ts"
import { demoIdentityIds } from "../../../../src/embedded/DemoIdentity.ts"
import { person } from "../../../support/TestIdentity.ts"
import { bearer } from "../../../support/TestTokens.ts"
import { type Browser, browser, ownPage, signedIn, staged } from "./ConsoleStage.ts"

const name = "bailiwick_console"

/** Lets time pass for the sessions of a mail account. */
const passed = Effect.fnUntraced(function* (accountId: string, column: "seen_at" | "ends_at", span: string) {
  const { sql } = yield* Database
  yield* sql`update console_sessions set ${sql(column)} = ${sql(column)} - ${span}::interval
    where account_id = ${accountId}::uuid`
})

const isIn = (one: Browser) => Effect.map(one.visitor, ({ session }) => session !== null)

layer(staged(), { excludeTestServices: true })("a session of the console", (it) => {
  it.effect("ends after half an hour without a request, and not before", () =>
    Effect.gen(function* () {
      const alice = yield* signedIn("Alice")
      yield* passed(demoIds.alice, "seen_at", "29 minutes")
      assert.strictEqual((yield* alice.ask("GET", "/v1/webhooks/")).status, 200)
      // That request counted.
      yield* passed(demoIds.alice, "seen_at", "29 minutes")
      assert.isTrue(yield* isIn(alice))
      yield* passed(demoIds.alice, "seen_at", "32 minutes")
      assert.strictEqual((yield* alice.ask("GET", "/v1/webhooks/")).status, 401)
      assert.isFalse(yield* isIn(alice))
      assert.isAbove(yield* pruneConsoleSessions, 0)
    }))

  it.effect("ends eight hours after the sign-in, however much it is used", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const bob = yield* signedIn("Bob")
      const [row] = yield* sql<{ hours: number }>`
        select extract(epoch from ends_at - created_at)::int / 3600 as hours from console_sessions
        where account_id = ${demoIds.bob}::uuid`
      assert.strictEqual(row!.hours, 8)
      yield* passed(demoIds.bob, "ends_at", "479 minutes")
      assert.isTrue(yield* isIn(bob))
      yield* passed(demoIds.bob, "ends_at", "1 minute")
      assert.strictEqual((yield* bob.ask("GET", "/v1/webhooks/")).status, 401)
      assert.isFalse(yield* isIn(bob))
      assert.isAbove(yield* pruneConsoleSessions, 0)
    }))

  it.effect("changes nothing of its mail account where its person is an auditor, and ends by a sign-out", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const alice = yield* signedIn("Alice")
      const url = "https://hooks.example/alice"
      const make = () => alice.ask("POST", "/v1/webhooks/", { headers: ownPage, json: { url, events: ["email.sent"] } })
      const made = yield* make()
      assert.strictEqual(made.status, 201, made.text)
      const auditor = yield* person({ auditor: true })
      yield* sql`update console_sessions set person_id = ${auditor} where account_id = ${demoIds.alice}::uuid`
      const refused = yield* make()
      assert.deepStrictEqual([refused.status, refused.body.code], [403, "console_read_only"])
      assert.strictEqual((yield* alice.ask("GET", "/v1/webhooks/")).status, 200)
      const left = yield* alice.ask("POST", "/console/sign-out", { headers: ownPage })
      assert.strictEqual(left.status, 200, left.text)
    }))

  it.effect("ends by a sign-out, also where the cookie is kept", () =>
    Effect.gen(function* () {
      const carol = yield* signedIn("Carol")
      const elsewhere = yield* signedIn("Carol")
      const kept = carol.jar.get(name)!
      const left = yield* carol.ask("POST", "/console/sign-out", { headers: ownPage })
      assert.deepStrictEqual([left.status, left.body], [200, { location: "/console/" }])
      assert.isFalse(carol.jar.has(name))
      carol.jar.set(name, kept)
      assert.strictEqual((yield* carol.ask("GET", "/v1/webhooks/")).status, 401)
      assert.isTrue(yield* isIn(elsewhere))
      // Once more, without a session.
      assert.strictEqual((yield* (yield* browser).ask("POST", "/console/sign-out", { headers: ownPage })).status, 200)
    }))

  it.effect("ends in every browser by a sign-out everywhere, of its holder alone", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const [one, two, other] = [yield* signedIn("Pat"), yield* signedIn("Pat"), yield* signedIn("Ada")]
      const sign = (body: unknown) => one.ask("POST", "/console/sign-out", { json: body, headers: ownPage })
      assert.strictEqual((yield* sign({ everywhere: "yes" })).status, 400)
      assert.isTrue(yield* isIn(one))
      assert.strictEqual((yield* sign({ everywhere: true })).status, 200)
      assert.strictEqual((yield* two.ask("GET", "/v1/me")).status, 401)
      assert.isFalse(yield* isIn(two))
      assert.isTrue(yield* isIn(other))
      const [record] = yield* sql<{ details: unknown }>`
        select details from audit_records
        where action = 'console-session.closed' and actor = ${`person:${demoIdentityIds.pat}`}`
      assert.deepStrictEqual(record!.details, { everywhere: true, sessions: 2 })
    }))

  it.effect("ends with its session at the issuer, once any process has revoked that", () =>
    Effect.gen(function* () {
      const sam = yield* signedIn("Sam")
      assert.strictEqual((yield* sam.ask("GET", "/v1/me")).status, 200)
      const mine = { headers: yield* bearer(demoIdentityIds.sam, { sid: "mine" }) }
      const one = yield* browser
      const { body } = yield* one.ask("GET", "/v1/me/sessions", mine)
      const { session_id } = body.items.find((item: { client_id: string }) => item.client_id === "bailiwick-console")
      const begun = yield* one.ask("POST", "/v1/me/credential-actions", {
        ...mine,
        json: { kind: "session.revoke", target_id: session_id },
      })
      yield* one.ask("POST", `/v1/me/credential-actions/${begun.body.intent_id}/complete`, {
        ...mine,
        json: { proof: { type: "confirm", acknowledged: true } },
      })
      assert.strictEqual((yield* sam.ask("GET", "/v1/me")).status, 401)
      assert.isFalse(yield* isIn(sam))
    }))

  it.effect("ends where its person is suspended or its account disabled, and with a new epoch", () =>
    Effect.gen(function* () {
      const { owner, sql } = yield* Database
      const [abe, bob, alice] = [yield* signedIn("Abe"), yield* signedIn("Bob"), yield* signedIn("Alice")]
      yield* sql`update people set status = 'suspended' where id = ${demoIdentityIds.abe}`
      yield* sql`update accounts set status = 'disabled' where id = ${demoIds.bob}::uuid`
      assert.strictEqual((yield* abe.ask("GET", "/v1/me")).status, 401)
      assert.strictEqual((yield* bob.ask("GET", "/v1/webhooks/")).status, 401)
      assert.deepStrictEqual([yield* isIn(abe), yield* isIn(bob)], [false, false])
      assert.isTrue(yield* isIn(alice))
      yield* owner`update installation set sessions_before = now()`
      assert.isFalse(yield* isIn(alice))
      yield* owner`update installation set sessions_before = null`
    }))

  it.effect("gets new tokens before the old ones expire", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const oz = yield* signedIn("Oz")
      const stored = Effect.map(
        sql<{ tokens: Uint8Array; left: number }>`
          select tokens, extract(epoch from tokens_until - created_at)::int as left from console_sessions
          where person_id = ${demoIdentityIds.oz}`,
        ([row]) => ({ tokens: Buffer.from(row!.tokens).toString("hex"), left: row!.left }),
      )
      const before = yield* stored
      assert.closeTo(before.left, 600, 2)
      yield* sql`update console_sessions set tokens_until = created_at where person_id = ${demoIdentityIds.oz}`
      const replies = yield* Effect.all(Array.from({ length: 8 }, () => oz.ask("GET", "/v1/me")), { concurrency: 8 })
      assert.deepStrictEqual(new Set(replies.map(({ status }) => status)), new Set([200]))
      const after = yield* stored
      assert.isAbove(after.left, 590)
      assert.notStrictEqual(after.tokens, before.tokens)
    }))
})
