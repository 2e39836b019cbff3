/** The pages of invitations and of links, from the mailed link to what the button did. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { randomUUID } from "node:crypto"
import { Database } from "../../../../services/platform/database/Database.ts"
import { demoIdentityIds } from "../../../../src/embedded/DemoIdentity.ts"
import { Logged } from "../../../support/TestManagement.ts"
import { browser, signedIn, signIn, staged } from "../console/ConsoleStage.ts"
import { invitation } from "../identity/Catalogue/OwnCases.ts"

/** The headers of a form that a page without a referrer posts to its own site. */
const ownForm = { headers: { origin: "null", "sec-fetch-site": "same-origin" }, form: {} }

const addressOf = Effect.fnUntraced(function* (personId: string) {
  const { sql } = yield* Database
  const [row] = yield* sql<{ email: string }>`select email from people where id = ${personId}`
  return row!.email
})

const membershipsOf = Effect.fnUntraced(function* (personId: string) {
  const { sql } = yield* Database
  return (yield* sql`select from institution_memberships where person_id = ${personId}`).length
})

layer(staged(), { excludeTestServices: true, timeout: "2 minutes" })("/enrollments/{token}", (it) => {
  it.effect("leads through the sign-in and back to one button, which accepts", () =>
    Effect.gen(function* () {
      const { pat } = demoIdentityIds
      const path = `/enrollments/${yield* invitation(yield* addressOf(pat))}`
      const token = path.split("/").at(-1)!
      const before = yield* membershipsOf(pat)
      const one = yield* browser
      const asked = yield* one.ask("GET", path)
      assert.strictEqual(asked.status, 200)
      assert.notInclude(asked.text, token)
      assert.notInclude(asked.text, "<form")
      const [, href] = /href="\/console\/sign-in(\?[^"]+)"/.exec(asked.text)!
      const back = yield* signIn(one, "Pat", href!.replaceAll("&amp;", "&"))
      assert.match(back.location, /^\/enrollments\/resume\?state=[\w-]{22}$/)
      const resumed = yield* one.ask("GET", back.location)
      assert.deepStrictEqual([resumed.status, resumed.location], [303, path])
      const page = yield* one.ask("GET", path)
      assert.include(page.text, "Accept the invitation")
      assert.notInclude(page.text, token)
      assert.strictEqual(yield* membershipsOf(pat), before)
      const foreign = yield* one.ask("POST", path, { form: {}, headers: { origin: "https://evil.example" } })
      assert.strictEqual(foreign.status, 403)
      assert.strictEqual(yield* membershipsOf(pat), before)
      const done = yield* one.ask("POST", path, ownForm)
      assert.deepStrictEqual([done.status, done.location], [303, "/enrollments/done/accepted"])
      assert.strictEqual(yield* membershipsOf(pat), before + 1)
      assert.include((yield* one.ask("GET", done.location)).text, "You are a member now")
      assert.include((yield* one.ask("GET", path)).text, "This invitation was accepted")
      assert.strictEqual((yield* one.ask("POST", path, ownForm)).status, 409)
      const { lines } = yield* Logged
      assert.isAbove(lines.length, 0)
      assert.isFalse(lines.some((line) => line.includes(token)))
      const { sql } = yield* Database
      const [records] = yield* sql<{ all: number; leaking: number }>`
        select count(*)::int as all, count(*) filter (where a::text like ${`%${token}%`})::int as leaking
        from audit_records a`
      assert.isAbove(records!.all, 0)
      assert.strictEqual(records!.leaking, 0)
    }))

  it.effect("changes nothing for a visitor who is not signed in, and lets another person wait for an administrator", () =>
    Effect.gen(function* () {
      const { abe } = demoIdentityIds
      const path = `/enrollments/${yield* invitation(`${randomUUID()}@example.com`)}`
      const nobody = yield* browser
      assert.strictEqual((yield* nobody.ask("POST", path, ownForm)).status, 401)
      // A mail account is no person.
      const alice = yield* signedIn("Alice")
      assert.strictEqual((yield* alice.ask("POST", path, ownForm)).status, 401)
      const before = yield* membershipsOf(abe)
      const one = yield* signedIn("Abe")
      const done = yield* one.ask("POST", path, ownForm)
      assert.deepStrictEqual([done.status, done.location], [303, "/enrollments/done/waiting"])
      assert.strictEqual(yield* membershipsOf(abe), before)
      assert.strictEqual((yield* one.ask("GET", "/enrollments/resume?state=x")).status, 400)
    }))
})

layer(staged(), { excludeTestServices: true, timeout: "2 minutes" })("/link-requests/{id}", (it) => {
  it.effect("asks for the sign-in, tells a stranger nothing, and lets the other side object", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const id = randomUUID()
      yield* sql`insert into requests (id, kind, state, author, person_id, fields, reason, created_at, expires_at)
        values (${id}::uuid, 'link', 'pending_review', ${demoIdentityIds.ada}, ${demoIdentityIds.pat},
          '{"issuer":"https://id.example","subject":"x"}', 'It is me <b>too</b>', ${new Date()},
          ${new Date(Date.now() + 86_400_000)})`
      const path = `/link-requests/${id}`
      const nobody = yield* browser
      const asked = yield* nobody.ask("GET", path)
      assert.include(asked.text, `return=${encodeURIComponent(path)}`)
      assert.notInclude(asked.text, "It is me")
      assert.strictEqual((yield* signIn(nobody, "Abe", `?return=${path}`)).location, path)
      assert.strictEqual((yield* nobody.ask("GET", path)).status, 404)
      assert.strictEqual((yield* nobody.ask("POST", path, ownForm)).status, 404)
      const pat = yield* signedIn("Pat")
      const page = yield* pat.ask("GET", path)
      assert.include(page.text, "It is me &lt;b&gt;too")
      const done = yield* pat.ask("POST", path, ownForm)
      assert.deepStrictEqual([done.status, done.location], [303, "/link-requests/done/objected"])
      const [row] = yield* sql<{ state: string }>`select state from requests where id = ${id}::uuid`
      assert.strictEqual(row!.state, "declined")
      assert.include((yield* pat.ask("GET", path)).text, "This request has ended")
      assert.strictEqual((yield* pat.ask("POST", path, ownForm)).status, 409)
    }))
})

layer(staged({ CONSOLE: "read" }), { excludeTestServices: true })("a console that may only read", (it) => {
  it.effect("accepts nothing", () =>
    Effect.gen(function* () {
      const { pat } = demoIdentityIds
      const path = `/enrollments/${yield* invitation(yield* addressOf(pat))}`
      const one = yield* signedIn("Pat")
      const refused = yield* one.ask("POST", path, ownForm)
      assert.strictEqual(refused.status, 403)
      assert.include(refused.text, "may only read")
    }))
})
