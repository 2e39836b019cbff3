/** Sign-in to the console as a browser does it, at the demo's issuer: cookies, redirects, and what must be refused. */
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { Database } from "../../../../services/platform/database/Database.ts"
import { demoIds } from "../../../../src/embedded/DemoDirectory.ts"
import { demoIdentityIds } from "../../../../src/embedded/DemoIdentity.ts"
import { DevKey } from "../../../../src/http/dev/DevKey.ts"
import { Server } from "../../../../src/http/Server.ts"
import { returnPath } from "../../../../src/http/console/ConsoleSignIn.ts"
import { consoleCookie } from "../../../../src/http/auth/ConsoleAuth.ts"
import { audited } from "../../../support/Audited.ts"
import { codeOf } from "../../../support/Fixtures.ts"
import { Logged } from "../../../support/TestManagement.ts"
import { bearer } from "../../../support/TestTokens.ts"
import { aal2, Browser, browser, chosen, ownPage, signedIn, signIn, staged, toIssuer } from "./ConsoleStage.ts"

const name = "bailiwick_console"

layer(staged(), { excludeTestServices: true })("sign-in to the console", (it) => {
  it.effect("a mail account signs in with PKCE, returns to its page, and uses the mail API", () =>
    Effect.gen(function* () {
      const one = yield* browser
      const { location, page } = yield* toIssuer(one, "?return=/console/webhooks?x=1")
      assert.deepInclude(Object.fromEntries(location.searchParams), {
        response_type: "code",
        client_id: "bailiwick-console",
        redirect_uri: `${one.origin}/console/callback`,
        code_challenge_method: "S256",
      })
      for (const who of ["Alice", "Bob", "Carol", "Sam", "Ada", "Abe", "Oz", "Pat", "Ida"]) {
        assert.include(page.text, `${who},`)
      }
      const back = yield* one.ask("GET", yield* chosen(one, page, "Alice"))
      assert.deepStrictEqual([back.status, back.location], [303, "/console/webhooks?x=1"])
      assert.isFalse(one.jar.has("bailiwick_sign_in"))
      const visitor = yield* one.visitor
      assert.deepInclude(visitor.account, { id: demoIds.alice, email: "alice@alder.example", plan: "business" })
      assert.deepInclude(visitor, { person: null, operator: false, institutions: [], mode: "on" })
      assert.isNotNull(visitor.session)
      assert.strictEqual((yield* one.ask("GET", "/v1/webhooks/")).status, 200)
      assert.deepStrictEqual(codeOf(yield* one.ask("GET", "/v1/me")), [401, "invalid_token"])
    }))

  it.effect("a person signs in, and uses the identity API with the rights of the directory", () =>
    Effect.gen(function* () {
      const sam = yield* signedIn("Sam", aal2)
      const visitor = yield* sam.visitor
      assert.deepInclude(visitor.person, { person_id: demoIdentityIds.sam, display_name: "Sam", aal: "aal2" })
      assert.deepStrictEqual(visitor.institutions, [
        { institution_id: demoIdentityIds.fern, name: "Fern", roles: ["sponsor"] },
      ])
      assert.deepStrictEqual(visitor.projects, [{ project_id: demoIdentityIds.fernPortal, name: "Fern Portal" }])
      assert.isNull(visitor.account)
      const me = yield* sam.ask("GET", "/v1/me")
      assert.deepStrictEqual([me.status, me.body.person_id], [200, demoIdentityIds.sam])
      assert.strictEqual((yield* sam.ask("GET", "/v1/me?ordinary")).status, 200)
      assert.deepStrictEqual(codeOf(yield* sam.ask("GET", "/v1/webhooks/")), [401, "invalid_credentials"])
      const oz = yield* signedIn("Oz")
      assert.isTrue((yield* oz.visitor).operator)
      assert.strictEqual((yield* oz.ask("GET", "/v1/operations")).status, 200)
    }))

  it.effect("the address that the demo prints opens the console, whose sign-in then asks for no key", () =>
    Effect.gen(function* () {
      const { key } = yield* DevKey
      const one = new Browser((yield* Server).url)
      assert.strictEqual((yield* one.ask("GET", "/dev/console")).status, 401)
      assert.strictEqual((yield* one.ask("GET", "/dev/console?key=other")).status, 401)
      const entered = yield* one.ask("GET", `/dev/console?key=${Redacted.value(key)}`)
      assert.deepStrictEqual([entered.status, entered.location], [303, "/dev/console"])
      const opened = yield* one.ask("GET", "/dev/console")
      assert.deepStrictEqual([opened.status, opened.location], [303, "/console/"])
      yield* signIn(one, "Pat")
      assert.isNotNull((yield* one.visitor).person)
    }))

  it.effect("without a session the console learns where to sign in, and nothing else", () =>
    Effect.gen(function* () {
      const one = yield* browser
      const { issuers, ...visitor } = yield* one.visitor
      assert.deepInclude(visitor, { session: null, person: null, account: null, operator: false, projects: [] })
      assert.deepStrictEqual(issuers, [{
        issuer: `${one.origin}/dev/issuer`,
        name: "the demo",
        sign_in_url: `${one.origin}/console/sign-in?issuer=${encodeURIComponent(`${one.origin}/dev/issuer`)}`,
      }])
      assert.deepStrictEqual(codeOf(yield* one.ask("GET", "/v1/me")), [401, "invalid_token"])
    }))

  it.effect("scripts reach no cookie, and the cookie of an ended session is taken back", () =>
    Effect.gen(function* () {
      const one = yield* signedIn("Alice")
      for (const line of one.set.filter((line) => !line.includes("Max-Age=0"))) {
        for (const part of ["HttpOnly", "SameSite=Lax"]) assert.include(line, part)
      }
      assert.match(one.jar.get(name)!, /^[A-Za-z0-9_-]{43}$/)
      assert.deepStrictEqual(consoleCookie(new URL("https://mail.example.com")), {
        name: "__Host-bailiwick_console",
        attributes: { httpOnly: true, secure: true, path: "/" },
      })
      one.jar.set(name, "A".repeat(43))
      // No other cookie is tried in its place.
      assert.deepStrictEqual(codeOf(yield* one.ask("GET", "/v1/webhooks/")), [401, "invalid_credentials"])
      assert.isNull((yield* one.visitor).session)
      assert.isFalse(one.jar.has(name))
    }))

  it.effect("a proof of another identity belongs to the session that began it, and no other site begins one", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const title = ({ text }: { readonly text: string }) => /<h1[^>]*>([^<]*)/.exec(text)?.[1]
      const [sam, ada] = [yield* signedIn("Sam"), yield* signedIn("Ada")]
      const begun = yield* sam.ask("GET", "/console/sign-in?link=true", { headers: { "sec-fetch-site": "cross-site" } })
      assert.deepStrictEqual([begun.status, title(begun)], [403, "Nothing was changed"])
      const unsaid = yield* sam.ask("GET", "/console/sign-in?link=true")
      assert.deepStrictEqual([unsaid.status, title(unsaid)], [403, "Nothing was changed"])
      const here = { headers: { "sec-fetch-site": "same-origin" } }
      const unknown = yield* (yield* browser).ask("GET", "/console/sign-in?link=true", here)
      assert.deepStrictEqual([unknown.status, title(unknown)], [400, "Sign in again"])
      const ida = yield* signedIn("Ida")
      const auditing = yield* ida.ask("GET", "/console/sign-in?link=true", here)
      assert.deepStrictEqual([auditing.status, title(auditing)], [403, "Nothing was changed"])

      const { location, page } = yield* toIssuer(sam, "?link=true", here)
      assert.deepInclude(Object.fromEntries(location.searchParams), { prompt: "login", max_age: "300" })
      const answer = yield* chosen(sam, page, "Pat")
      // Ada's session, in a browser that carries the sign-in of Sam's.
      const session = sam.jar.get(name)!
      sam.jar.set(name, ada.jar.get(name)!)
      const stolen = yield* sam.ask("GET", answer)
      assert.deepStrictEqual([stolen.status, title(stolen)], [400, "Sign in again"])
      assert.deepStrictEqual(yield* sql`select from link_proofs`, [])

      sam.jar.set(name, session)
      const again = yield* toIssuer(sam, "?link=true", here)
      const proven = yield* sam.ask("GET", yield* chosen(sam, again.page, "Pat"))
      assert.match(proven.location, /^\/console\/account\?link_proof=[0-9a-f-]{36}$/)
      assert.strictEqual((yield* sam.visitor).person.display_name, "Sam")
      // A session of an older sign-in: Sam signs in as himself first, and begins again.
      yield* sql`update console_sessions set authenticated_at = now() - interval '6 minutes'`
      const older = yield* toIssuer(sam, "?link=true", here)
      assert.deepInclude(Object.fromEntries(older.location.searchParams), {
        prompt: "login",
        max_age: "300",
        login_hint: "sam@fern.example",
      })
      const back = yield* sam.ask("GET", yield* chosen(sam, older.page, "Sam"))
      assert.strictEqual(back.location, "/console/account")
      const fresh = yield* toIssuer(sam, "?link=true", here)
      assert.strictEqual(fresh.location.searchParams.get("prompt"), "login")
      const proofs = yield* sql`select person_id, subject from link_proofs`
      assert.deepStrictEqual(proofs, [{ person_id: demoIdentityIds.sam, subject: "pat" }])
    }))

  it.effect("an answer counts once, for the browser that began, and with its own state", () =>
    Effect.gen(function* () {
      const [mine, other] = [yield* browser, yield* browser]
      const { page } = yield* toIssuer(mine)
      const answer = yield* chosen(mine, page, "Bob")
      const refused = (reply: { readonly status: number; readonly text: string }) => {
        assert.strictEqual(reply.status, 400, reply.text)
        assert.notInclude(reply.text, "<script")
      }
      // Another browser, with a sign-in of its own under way, gets the answer: login CSRF.
      yield* toIssuer(other)
      refused(yield* other.ask("GET", answer))
      refused(yield* (yield* browser).ask("GET", answer))
      // The right browser, with another state, or without one.
      const cookie = mine.jar.get("bailiwick_sign_in")!
      for (
        const change of [
          (url: URL) => url.searchParams.set("state", "x"),
          (url: URL) => url.searchParams.delete("state"),
        ]
      ) {
        const url = new URL(answer)
        change(url)
        mine.jar.set("bailiwick_sign_in", cookie)
        refused(yield* mine.ask("GET", url.href))
      }
      // Another issuer answers (RFC 9207).
      const mixed = new URL(answer)
      mixed.searchParams.set("iss", "https://evil.example")
      mine.jar.set("bailiwick_sign_in", cookie)
      refused(yield* mine.ask("GET", mixed.href))
      mine.jar.set("bailiwick_sign_in", cookie)
      assert.strictEqual((yield* mine.ask("GET", answer)).status, 303)
      // Again: without the cookie, which is gone, and with it: the issuer redeems a code once.
      refused(yield* mine.ask("GET", answer))
      mine.jar.set("bailiwick_sign_in", cookie)
      refused(yield* mine.ask("GET", answer))
      assert.strictEqual((yield* mine.visitor).account.id, demoIds.bob)
    }))

  it.effect("a sign-in that was given up, or that belongs to no person here, opens nothing", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const one = yield* browser
      const { location } = yield* toIssuer(one)
      const denied = new URL("/console/callback", one.origin)
      denied.search = String(
        new URLSearchParams({
          error: "access_denied",
          state: location.searchParams.get("state")!,
          iss: `${one.origin}/dev/issuer`,
        }),
      )
      const refused = yield* one.ask("GET", denied.href, { headers: { "x-request-id": "console-denied" } })
      assert.strictEqual(refused.status, 403, refused.text)
      assert.deepInclude(yield* audited("console-denied"), { status: 403, code: "access_denied" })
      const { page } = yield* toIssuer(one)
      const answer = yield* chosen(one, page, "Abe")
      yield* sql`update people set status = 'suspended' where id = ${demoIdentityIds.abe}`
      const unknown = yield* one.ask("GET", answer)
      yield* sql`update people set status = 'active' where id = ${demoIdentityIds.abe}`
      assert.strictEqual(unknown.status, 403, unknown.text)
      assert.include(unknown.text, "You are not known here")
      assert.isFalse(one.jar.has(name))
    }))

  it.effect("writes by the session come from our own pages", () =>
    Effect.gen(function* () {
      const [alice, sam] = [yield* signedIn("Alice"), yield* signedIn("Sam")]
      const webhook = { url: "http://127.0.0.1:9000/", events: ["email.delivered"] }
      for (const headers of [{ origin: "https://evil.example" }, { "sec-fetch-site": "cross-site" }]) {
        const refused = [
          yield* alice.ask("POST", "/v1/webhooks/", { json: webhook, headers }),
          yield* sam.ask("POST", "/v1/me/credential-actions", { json: { kind: "sessions.revoke_others" }, headers }),
          yield* alice.ask("POST", "/console/sign-out", { headers }),
        ]
        for (const reply of refused) assert.deepStrictEqual(codeOf(reply), [403, "csrf_rejected"])
      }
      const headers = { ...ownPage, origin: alice.origin }
      const made = yield* alice.ask("POST", "/v1/webhooks/", { json: webhook, headers })
      assert.strictEqual(made.status, 201, made.text)
      const begun = yield* sam.ask("POST", "/v1/me/credential-actions", {
        json: { kind: "sessions.revoke_others" },
        headers,
      })
      assert.strictEqual(begun.status, 201, begun.text)
    }))

  it.effect("a step-up asks the issuer for what is needed, and keeps the session under a new cookie", () =>
    Effect.gen(function* () {
      const one = yield* signedIn("Ada")
      const before = { cookie: one.jar.get(name)!, visitor: yield* one.visitor }
      assert.strictEqual(before.visitor.person.aal, "aal1")
      const { location, page } = yield* toIssuer(one, `?acr_values=${aal2}&max_age=60&return=/console/decide`)
      assert.deepInclude(Object.fromEntries(location.searchParams), {
        acr_values: aal2,
        max_age: "60",
        prompt: "login",
        login_hint: "ada@fern.example",
      })
      // The demo's issuer asks anew, beginning at the one whom the console hopes for.
      assert.match(page.text, /name="subject" value="ada"\s+autofocus\s*>Ada,/)
      assert.strictEqual(page.text.match(/autofocus/g)!.length, 1)
      assert.match(page.text, new RegExp(`value="${aal2}"\\s+checked`))
      const back = yield* one.ask("GET", yield* chosen(one, page, "Ada", aal2))
      assert.strictEqual(back.location, "/console/decide")
      const after = yield* one.visitor
      assert.deepStrictEqual([after.person.aal, after.session.id], ["aal2", before.visitor.session.id])
      assert.notStrictEqual(one.jar.get(name), before.cookie)
      const old = yield* browser
      old.jar.set(name, before.cookie)
      assert.isNull((yield* old.visitor).session)
      // Another person in the same browser gets a session of their own.
      yield* signIn(one, "Sam")
      const { person, session } = yield* one.visitor
      assert.strictEqual(person.display_name, "Sam")
      assert.notStrictEqual(session.id, after.session.id)
    }))

  it.effect("a step-up from which another one comes back changes nothing, and says so", () =>
    Effect.gen(function* () {
      const one = yield* signedIn("Ada")
      const before = { cookie: one.jar.get(name)!, visitor: yield* one.visitor }
      for (const [who, query] of [["Sam", `?acr_values=${aal2}`], ["Alice", "?max_age=60"]] as const) {
        const { location, page } = yield* toIssuer(one, `${query}&return=/console/decide`)
        assert.strictEqual(location.searchParams.get("prompt"), "login")
        const answer = yield* chosen(one, page, who, aal2)
        const refused = yield* one.ask("GET", answer, { headers: { "x-request-id": `another-${who}` } })
        assert.strictEqual(refused.status, 403, refused.text)
        assert.include(refused.text, "You are signed in as before")
        assert.deepInclude(yield* audited(`another-${who}`), { status: 403, code: "another_holder" })
        assert.include(refused.text, "To the console")
        assert.strictEqual(one.jar.get(name), before.cookie)
        assert.deepStrictEqual((yield* one.visitor).person, before.visitor.person)
        assert.strictEqual((yield* one.visitor).session.id, before.visitor.session.id)
      }
      // The same person succeeds afterwards, and a browser whose session has ended has nothing to protect.
      yield* signIn(one, "Ada", `?acr_values=${aal2}`, aal2)
      assert.strictEqual((yield* one.visitor).session.id, before.visitor.session.id)
      const { page } = yield* toIssuer(one, "?max_age=60")
      yield* one.ask("POST", "/console/sign-out", { headers: ownPage })
      const anew = yield* one.ask("GET", yield* chosen(one, page, "Sam"))
      assert.strictEqual(anew.status, 303, anew.text)
      assert.strictEqual((yield* one.visitor).person.display_name, "Sam")
    }))

  it.effect("no answer, log line or audit record holds a token, a code or a cookie", () =>
    Effect.gen(function* () {
      const { lines } = yield* Logged
      const { sql } = yield* Database
      const one = yield* browser
      const { page } = yield* toIssuer(one)
      const pending = one.jar.get("bailiwick_sign_in")!
      const answer = yield* chosen(one, page, "Pat")
      const back = yield* one.ask("GET", answer)
      yield* one.ask("GET", "/v1/me")
      const code = new URL(answer).searchParams.get("code")!
      const secrets = [code, pending, one.jar.get(name)!]
      const told = [back.text, (yield* one.ask("GET", "/v1/console/session")).text, ...lines]
      const records = yield* sql<{ text: string }>`select audit_records::text as text from audit_records`
      const stored = yield* sql<{ text: string }>`select console_sessions::text as text from console_sessions`
      for (const text of [...told, ...records.map(({ text }) => text), ...stored.map(({ text }) => text)]) {
        for (const secret of secrets) assert.notInclude(text, secret)
        // A JWT.
        assert.notMatch(text, /eyJ[A-Za-z0-9_-]{10,}\./)
      }
      const opened = yield* sql<{ actor: string }>`
        select actor from audit_records where action = 'console-session.opened'`
      assert.include(opened.map(({ actor }) => actor), `person:${demoIdentityIds.pat}`)
    }))
})

layer(staged({ CONSOLE: "read" }), { excludeTestServices: true })("CONSOLE=read", (it) => {
  it.effect("a session reads and changes nothing; a token still does", () =>
    Effect.gen(function* () {
      const [alice, sam] = [yield* signedIn("Alice"), yield* signedIn("Sam")]
      assert.strictEqual((yield* alice.visitor).mode, "read")
      assert.strictEqual((yield* alice.ask("GET", "/v1/webhooks/")).status, 200)
      const refused = [
        yield* alice.ask("POST", "/v1/api-keys/", { json: { name: "k", permissions: ["send"] }, headers: ownPage }),
        yield* sam.ask("POST", "/v1/me/credential-actions", { json: {}, headers: ownPage }),
      ]
      for (const reply of refused) assert.deepStrictEqual(codeOf(reply), [403, "console_read_only"])
      const headers = yield* bearer(demoIdentityIds.sam)
      const begun = yield* sam.ask("POST", "/v1/me/credential-actions", {
        json: { kind: "sessions.revoke_others" },
        headers,
      })
      assert.strictEqual(begun.status, 201, begun.text)
      assert.strictEqual((yield* alice.ask("POST", "/console/sign-out", { headers: ownPage })).status, 200)
    }))
})

layer(staged({ CONSOLE: "off" }), { excludeTestServices: true })("CONSOLE=off", (it) => {
  it.effect("there is no console, and its cookie is unknown", () =>
    Effect.gen(function* () {
      const one = yield* browser
      for (const path of ["/console/sign-in", "/console/callback?state=x", "/v1/console/session"]) {
        assert.strictEqual((yield* one.ask("GET", path)).status, 404, path)
      }
      assert.strictEqual((yield* one.ask("POST", "/console/sign-out", { headers: ownPage })).status, 404)
    }))
})

describe("the return path", () => {
  it("leads to pages of the console alone", () => {
    const publicUrl = new URL("https://mail.example.com")
    const kept = ["/console/", "/console/webhooks/x?page=2", "https://mail.example.com/console/webhooks"]
    assert.deepStrictEqual(kept.map((path) => returnPath(path, publicUrl)), [
      "/console/",
      "/console/webhooks/x?page=2",
      "/console/webhooks",
    ])
    const others = [
      ...[
        "//evil.example/console/",
        "/\\evil.example/console/",
        "https://evil.example/console/",
        "javascript:alert(1)",
      ],
      ...[
        "/v1/me",
        "/consoles/",
        "/console/../v1/me",
        "/console/sign-in?x",
        "/console/callback",
        "/console/sign-out",
      ],
      ...[`/console/${"x".repeat(2_000)}`, "http://mail.example.com/console/", ""],
    ]
    for (const path of [null, ...others]) assert.strictEqual(returnPath(path, publicUrl), "/console/", path ?? "none")
  })
})
