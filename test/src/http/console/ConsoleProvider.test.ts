/** The console's sign-in at a real OpenID provider: PKCE, single sign-on, rotated refresh tokens, its own sign-out. */
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Database } from "../../../../services/platform/database/Database.ts"
import { Server } from "../../../../src/http/Server.ts"
import { type SignInProvider, signInProvider, throughPages } from "../../../support/OidcSignIn.ts"
import { account } from "../../../support/TestAccounts.ts"
import { person } from "../../../support/TestIdentity.ts"
import { management } from "../../../support/TestManagement.ts"
import { Browser, ownPage } from "./ConsoleStage.ts"

const publicUrl = "https://mail.example.com"
const callback = `${publicUrl}/console/callback`
const secret = "a-secret-that-is-long-enough-for-everyone"
const cookie = "__Host-bailiwick_console"

const provider = signInProvider({
  clients: [{
    client_id: "bailiwick",
    client_secret: secret,
    grant_types: ["authorization_code", "refresh_token"],
    redirect_uris: [callback],
    post_logout_redirect_uris: [`${publicUrl}/console/`],
  }],
  features: { revocation: { enabled: true } },
  issueRefreshToken: () => true,
  rotateRefreshToken: true,
})

class RealIssuer extends Context.Service<RealIssuer, SignInProvider>()("bailiwick/test/console/RealIssuer") {
  static readonly layer = Layer.effect(RealIssuer, provider)
}

/** Another one, which names people alone. */
class OtherIssuer extends Context.Service<OtherIssuer, SignInProvider>()("bailiwick/test/console/OtherIssuer") {
  static readonly layer = Layer.effect(OtherIssuer, provider)
}

const secretFile = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "bailiwick-secret-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true })),
).pipe(Effect.map((folder) => {
  const path = join(folder, "secret")
  writeFileSync(path, `${secret}\n`)
  return path
}))

const served = Layer.unwrap(Effect.gen(function* () {
  const issuers = [yield* RealIssuer, yield* OtherIssuer].map(({ issuer }) => ({ issuer, jwks_uri: `${issuer}/jwks` }))
  const client = { client_id: "bailiwick", client_secret_file: yield* secretFile }
  return management({
    DEMO: "false",
    PUBLIC_URL: publicUrl,
    MANAGEMENT_ISSUERS: JSON.stringify(issuers),
    MAIL_ISSUERS: JSON.stringify(issuers.slice(0, 1)),
    CONSOLE_ISSUERS: JSON.stringify(
      issuers.map(({ issuer }, n) => ({ issuer, ...client, name: ["Example ID", "Other ID"][n] })),
    ),
  })
})).pipe(Layer.provideMerge(Layer.merge(RealIssuer.layer, OtherIssuer.layer)))

/** Signs in; returns what the provider asked for on the way. `jar` are the browser's cookies at the provider. */
const signIn = Effect.fnUntraced(
  function* (
    one: Browser,
    login: string,
    jar: Map<string, string>,
    query = "",
    at: typeof RealIssuer | typeof OtherIssuer = RealIssuer,
  ) {
    const asked = new URLSearchParams(query)
    asked.set("issuer", (yield* at).issuer)
    const begun = yield* one.ask("GET", `/console/sign-in?${asked}`)
    const { location, prompts } = yield* Effect.promise(() => throughPages(begun.location, login, callback, jar))
    const back = yield* one.ask("GET", `${location.pathname}${location.search}`)
    return { back, prompts, asked: Object.fromEntries(new URL(begun.location).searchParams) }
  },
)

const fresh = Effect.map(Server, ({ url }) => new Browser(url))

layer(served, { excludeTestServices: true })("the console at a real provider", (it) => {
  it.effect("signs in, silently the second time, and anew where a fresh sign-in is asked for", () =>
    Effect.gen(function* () {
      const { issuer } = yield* RealIssuer
      const ada = yield* person({ issuer, subject: "ada", display_name: "Ada" })
      const [one, jar] = [yield* fresh, new Map<string, string>()]
      const first = yield* signIn(one, "ada", jar, "?return=/console/decide")
      assert.deepStrictEqual([first.back.status, first.back.location], [303, "/console/decide"], first.back.text)
      assert.deepStrictEqual(first.prompts, ["login", "consent"])
      const visitor = yield* one.visitor
      assert.strictEqual(visitor.person.person_id, ada)
      assert.deepStrictEqual(visitor.issuers.map(({ name }: { name: string }) => name), ["Example ID", "Other ID"])
      const line = one.set.find((line) => line.startsWith(cookie))!
      for (const part of ["Path=/", "HttpOnly", "Secure", "SameSite=Lax"]) assert.include(line, part)
      assert.notInclude(line, "Domain")
      assert.strictEqual((yield* one.ask("GET", "/v1/me")).body.person_id, ada)
      // Our own Origin is the one of PUBLIC_URL.
      const headers = { ...ownPage, origin: publicUrl }
      const begun = yield* one.ask("POST", "/v1/me/credential-actions", {
        json: { kind: "sessions.revoke_others" },
        headers,
      })
      assert.strictEqual(begun.status, 201, begun.text)

      assert.deepStrictEqual((yield* signIn(one, "ada", jar)).prompts, [])
      assert.strictEqual((yield* one.visitor).session.id, visitor.session.id)
      const again = yield* signIn(one, "ada", jar, "?max_age=0")
      assert.include(again.prompts, "login")
      assert.strictEqual(again.back.status, 303, again.back.text)
    }))

  it.effect("a step-up from which another person comes back changes nothing", () =>
    Effect.gen(function* () {
      const { issuer } = yield* RealIssuer
      const uma = yield* person({ issuer, subject: "uma", email: "uma@fern.example" })
      yield* person({ issuer, subject: "vic" })
      const [one, jar] = [yield* fresh, new Map<string, string>()]
      const first = yield* signIn(one, "uma", jar)
      assert.notProperty(first.asked, "prompt")
      assert.notProperty(first.asked, "login_hint")
      const { session } = yield* one.visitor
      const { back } = yield* signIn(one, "vic", jar, "?max_age=0")
      assert.strictEqual(back.status, 403, back.text)
      const after = yield* one.visitor
      assert.deepStrictEqual([after.person.person_id, after.session.id], [uma, session.id])
      assert.strictEqual((yield* one.ask("GET", "/v1/me")).body.person_id, uma)
      // The provider's session in this browser is Vic's now: without a question it would send Vic back, for an hour.
      const again = yield* signIn(one, "uma", jar, "?max_age=3600")
      assert.include(again.prompts, "login")
      assert.deepInclude(again.asked, { prompt: "login", login_hint: "uma@fern.example" })
      assert.strictEqual(again.back.status, 303, again.back.text)
      assert.strictEqual((yield* one.visitor).session.id, session.id)
    }))

  it.effect("a person whom two issuers name may step up at the other one, and no other account may", () =>
    Effect.gen(function* () {
      const [{ issuer }, other] = [yield* RealIssuer, yield* OtherIssuer]
      const { sql } = yield* Database
      const [mails, foreign] = [yield* account({ plan: "business" }), yield* account({ plan: "business" })]
      const mia = yield* person({ issuer, subject: mails })
      const alias = yield* person({ issuer: other.issuer, subject: "mia", email: "mia@other.example" })
      const [one, jar] = [yield* fresh, new Map<string, string>()]
      yield* signIn(one, mails, jar)
      assert.deepStrictEqual((yield* one.visitor).account.id, mails)
      const stepUp = signIn(one, "mia", new Map(), "?max_age=300", OtherIssuer)
      assert.strictEqual((yield* stepUp).back.status, 403)
      yield* sql`update people set merged_into = ${mia} where id = ${alias}`
      yield* sql`update identities set person_id = ${mia} where person_id = ${alias}`
      const up = yield* stepUp
      assert.strictEqual(up.back.status, 303, up.back.text)
      assert.strictEqual(up.asked["login_hint"], "mia@other.example")
      // An address that the directory has under one issuer is never told to the other one.
      yield* sql`update people set email = case when id = ${mia} then 'mia@fern.example' end where id in (${mia}, ${alias})`
      assert.notProperty((yield* stepUp).asked, "login_hint")
      const { account: none, person: after } = yield* one.visitor
      assert.deepStrictEqual([after.person_id, none], [mia, null])
      // And back. A session that speaks for one mail account is not another one's, whoever the person is.
      const back = yield* signIn(one, mails, jar, "?max_age=300")
      assert.strictEqual(back.back.status, 303, back.back.text)
      assert.strictEqual((yield* one.visitor).account.id, mails)
      yield* person({ issuer, subject: foreign })
      yield* sql`update identities set person_id = ${mia} where subject = ${foreign}`
      assert.strictEqual((yield* signIn(one, foreign, jar, "?max_age=300")).back.status, 403)
      assert.strictEqual((yield* one.visitor).account.id, mails)
    }))

  it.effect("another identity of the person is proven by a sign-in there, and the session stays the person's", () =>
    Effect.gen(function* () {
      const { issuer } = yield* RealIssuer
      const { sql } = yield* Database
      const lia = yield* person({ issuer, subject: "lia" })
      yield* person({ issuer, subject: "lia-at-work" })
      const [one, jar] = [yield* fresh, new Map<string, string>()]
      yield* signIn(one, "lia", jar)
      const { session } = yield* one.visitor
      const linking = () =>
        one.ask("GET", `/console/sign-in?${new URLSearchParams({ link: "true", issuer })}`, { headers: ownPage })
      // The provider tells the time of a sign-in where its age is asked for: Lia signs in as herself first.
      const own = yield* linking()
      const first = yield* Effect.promise(() => throughPages(own.location, "lia", callback, jar))
      assert.deepStrictEqual(first.prompts, ["login"])
      const back = yield* one.ask("GET", `${first.location.pathname}${first.location.search}`)
      assert.strictEqual(back.location, "/console/account", back.text)
      const begun = yield* linking()
      // The provider's own session is Lia's: it asks anew who signs in.
      const { location, prompts } = yield* Effect.promise(() =>
        throughPages(begun.location, "lia-at-work", callback, jar)
      )
      assert.include(prompts, "login")
      const proven = yield* one.ask("GET", `${location.pathname}${location.search}`)
      assert.match(proven.location, /^\/console\/account\?link_proof=[0-9a-f-]{36}$/, proven.text)
      const proofs = yield* sql`select person_id, issuer, subject from link_proofs`
      assert.deepStrictEqual(proofs, [{ person_id: lia, issuer, subject: "lia-at-work" }])
      const after = yield* one.visitor
      assert.deepStrictEqual([after.person.person_id, after.session.id], [lia, session.id])
      assert.strictEqual((yield* one.ask("GET", "/v1/me")).body.person_id, lia)
    }))

  it.effect("a person whom the directory does not know is not let in", () =>
    Effect.gen(function* () {
      const one = yield* fresh
      const { back } = yield* signIn(one, "stranger", new Map())
      assert.strictEqual(back.status, 403, back.text)
      assert.isFalse(one.jar.has(cookie))
    }))

  it.effect("redeems a refresh token once, for all requests that need it", () =>
    Effect.gen(function* () {
      const { answered, issuer } = yield* RealIssuer
      const { sql } = yield* Database
      const rea = yield* person({ issuer, subject: "rea" })
      const one = yield* fresh
      yield* signIn(one, "rea", new Map())
      const redeemed = () => answered.filter((line) => line.startsWith("POST /token")).length
      for (let round = 0; round < 3; round++) {
        yield* sql`update console_sessions set tokens_until = created_at where person_id = ${rea}`
        const before = redeemed()
        const replies = yield* Effect.all(Array.from({ length: 6 }, () => one.ask("GET", "/v1/me")), { concurrency: 6 })
        assert.deepStrictEqual(replies.map(({ status }) => status), [200, 200, 200, 200, 200, 200])
        assert.strictEqual(redeemed() - before, 1)
      }
      assert.notInclude(answered, "POST /token 400")
    }))

  it.effect("signs out at the provider as well, in this browser alone", () =>
    Effect.gen(function* () {
      const { answered, issuer } = yield* RealIssuer
      const eve = yield* person({ issuer, subject: "eve" })
      const [one, two] = [yield* fresh, yield* fresh]
      yield* signIn(one, "eve", new Map())
      yield* signIn(two, "eve", new Map())
      const left = yield* one.ask("POST", "/console/sign-out", { headers: ownPage })
      assert.strictEqual(left.status, 200, left.text)
      const away = new URL(left.body.location)
      assert.strictEqual(away.origin + away.pathname, `${issuer}/session/end`)
      assert.strictEqual(away.searchParams.get("post_logout_redirect_uri"), `${publicUrl}/console/`)
      assert.include(answered, "POST /token/revocation 200")
      assert.strictEqual((yield* two.ask("GET", "/v1/me")).body.person_id, eve)
    }))

  it.effect("a revoked refresh token ends the session", () =>
    Effect.gen(function* () {
      const { issuer } = yield* RealIssuer
      const { sql } = yield* Database
      const tia = yield* person({ issuer, subject: "tia" })
      const one = yield* fresh
      yield* signIn(one, "tia", new Map())
      const [copy] = yield* sql<{ tokens: Uint8Array }>`select tokens from console_sessions where person_id = ${tia}`
      const expire = sql`update console_sessions set tokens_until = created_at where person_id = ${tia}`
      yield* expire
      assert.strictEqual((yield* one.ask("GET", "/v1/me")).status, 200)
      // The old refresh token again: the provider takes it for stolen, and revokes all of them.
      yield* sql`update console_sessions set tokens = ${copy!.tokens} where person_id = ${tia}`
      yield* expire
      assert.strictEqual((yield* one.ask("GET", "/v1/me")).status, 401)
      assert.isNull((yield* one.visitor).session)
      assert.lengthOf(yield* sql`select from console_sessions where person_id = ${tia}`, 0)
    }))
})
