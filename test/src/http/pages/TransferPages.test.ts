import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { randomUUID } from "node:crypto"
import { CommandId } from "../../../../schemas/BrandedIds.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import { Transfers } from "../../../../services/transfers/Transfers.ts"
import { accept, domain, force, offer, person, tokenOf } from "../../../services/transfers/TransferFixture.ts"
import { signedIn } from "../../../support/TestAccounts.ts"
import {
  acceptedOffer,
  another,
  attack,
  call,
  get,
  type Headers,
  offered,
  ownForm,
  press,
  publicUrl,
  served,
  spans,
  statusOf,
} from "./TransferPagesServer.ts"

layer(served, { excludeTestServices: true, timeout: "2 minutes" })("/transfers/accept and /transfers/stop", (it) => {
  it.effect("looking at a page changes nothing, and shows the effect of its buttons", () =>
    Effect.gen(function* () {
      const { alice, made, path, session } = yield* offered({ note: "Yours now" })
      for (let i = 0; i < 10; i++) assert.strictEqual((yield* get(path, session)).status, 200)
      assert.strictEqual((yield* call("HEAD", path, session)).status, 200)
      assert.strictEqual(yield* statusOf(made.id), "pending")
      const { text } = yield* get(path, session)
      for (const shown of [made.domain_name, made.source_label, "Yours now", "24 hours after you accept", " UTC"]) {
        assert.include(text, shown)
      }
      assert.include(text, "stop the transfer")
      assert.deepStrictEqual([...text.matchAll(/<button[^>]*>([^<]+)/g)].map(([, label]) => label), [
        "Accept the domain",
        "Decline the offer",
      ])
      assert.match(text, /<form method="post">/)
      assert.notInclude(text, alice.email)
    }))

  it.effect("the recipient can decline by the other button, and the owner is told", () =>
    Effect.gen(function* () {
      const { alice, made, path, session } = yield* offered()
      const stranger = yield* signedIn((yield* person()).id)
      const answer = { answer: "decline" }
      assert.strictEqual((yield* press(path, stranger, answer)).status, 403)
      assert.strictEqual((yield* press(path, {}, answer)).status, 401)
      assert.strictEqual(yield* statusOf(made.id), "pending")
      const done = yield* press(path, session, answer)
      assert.deepStrictEqual([done.status, done.headers.get("location")], [303, "/transfers/done/declined"])
      assert.strictEqual(yield* statusOf(made.id), "declined")
      assert.include((yield* get("/transfers/done/declined")).text, "You declined the domain")
      assert.strictEqual((yield* press(path, session, answer)).status, 409)
      const { sql } = yield* Database
      const mails = yield* sql`
        select from mails where recipient = ${alice.email} and kind = 'transfer.declined'`
      assert.strictEqual(mails.length, 1)
    }))

  it.effect("a recipient at the domain limit can still decline", () =>
    Effect.gen(function* () {
      const { bob, made, path, session } = yield* offered()
      yield* domain(bob)
      const { text } = yield* get(path, session)
      assert.include(text, "You cannot accept it at the moment.")
      assert.notInclude(text, "Accept the domain")
      assert.strictEqual((yield* press(path, session, { answer: "decline" })).status, 303)
      assert.strictEqual(yield* statusOf(made.id), "declined")
    }))

  it.effect("a page names the signed-in account and the intended one, masked", () =>
    Effect.gen(function* () {
      const alice = yield* person()
      const bob = yield* person({ email: `bob.${randomUUID()}@birch.example` })
      const carol = yield* person({ email: `carol.${randomUUID()}@cedar.example` })
      const made = yield* offer(alice.id, yield* domain(alice), bob.email)
      const path = `/transfers/accept/${yield* tokenOf("accept", made.id)}`
      assert.include((yield* get(path)).text, "<bdi>b***@birch.example</bdi>")
      assert.include((yield* get(path, yield* signedIn(bob.id))).text, "<bdi>b***@birch.example</bdi>")
      for (const ask of [get(path, yield* signedIn(carol.id)), press(path, yield* signedIn(carol.id))]) {
        const { text } = yield* ask
        assert.include(text, "signed in as <bdi>c***@cedar.example</bdi>")
        assert.include(text, "sent to <bdi>b***@birch.example</bdi>")
        assert.notMatch(text, /(bob|carol)\./)
      }
    }))

  it.effect("one button accepts, into the chosen workspace, and leads to a page without the token", () =>
    Effect.gen(function* () {
      const { bob, made, path, session, token } = yield* offered()
      const second = yield* another(bob)
      const { text } = yield* get(path, session)
      assert.isBelow(text.indexOf(`value="${bob.workspaceId}"`), text.indexOf(`value="${second}"`))
      assert.notInclude(text, token)
      const foreign = yield* press(path, session, { workspace: randomUUID() })
      assert.strictEqual(foreign.status, 403)
      assert.include(foreign.text, "Choose another workspace")
      assert.strictEqual(yield* statusOf(made.id), "pending")
      const done = yield* press(path, session, { workspace: second })
      assert.deepStrictEqual([done.status, done.headers.get("location")], [303, "/transfers/done/accepted"])
      const state = (yield* (yield* Transfers).find("id", made.id))!
      assert.deepStrictEqual([state.status, state.targetOrgId, state.acceptUsed], ["accepted", second, true])
      assert.strictEqual((yield* get("/transfers/done/accepted")).status, 200)
    }))

  it.effect("a button pressed twice at once acts once; from then on the link explains itself", () =>
    Effect.gen(function* () {
      const { bob, made, path, session } = yield* offered()
      const both = yield* Effect.all([press(path, session), press(path, session)], { concurrency: 2 })
      assert.deepStrictEqual(both.map(({ status }) => status).sort(), [303, 409])
      assert.include(both.find(({ status }) => status === 409)!.text, "was accepted and takes effect on")
      assert.strictEqual((yield* (yield* Transfers).find("id", made.id))!.targetOrgId, bob.workspaceId)
      const later = yield* get(path)
      assert.strictEqual(later.status, 200)
      assert.include(later.text, "This link was used already")
      assert.notInclude(later.text, "<form")
    }))

  it.effect("a held installation says so, and the link stays good", () =>
    Effect.gen(function* () {
      const { made, path, session } = yield* offered()
      const { sql } = yield* Database
      yield* sql`update installation set state = 'held', held_since = 'epoch', held_reason = 'restored'`
      const held = yield* press(path, session)
      yield* sql`update installation set state = 'open', held_since = null, held_reason = null`
      assert.deepStrictEqual([held.status, held.headers.get("retry-after")], [503, "5"])
      assert.include(held.text, "open the link again in a few minutes")
      assert.strictEqual(yield* statusOf(made.id), "pending")
      assert.strictEqual((yield* press(path, session)).status, 303)
    }))

  it.effect("any user's text is shown as text, under a policy without scripts and referrers", () =>
    Effect.gen(function* () {
      const { bob, path, session } = yield* offered({ alice: { name: attack }, note: attack })
      yield* another(bob)
      const { stopPath } = yield* acceptedOffer()
      const all = [yield* get(path, session), yield* get(path), yield* get(stopPath), yield* get("/transfers/stop/x")]
      assert.include(all[0]!.text, "&lt;script&gt;alert(1)&lt;/script&gt; &quot;&amp;&#39; &lt;img")
      assert.include(all[0]!.text, "Second &lt;script&gt;")
      for (const { headers, text } of all) {
        assert.notMatch(text, /<script|<img|<style|<iframe| on\w+=| style=/i)
        assert.strictEqual(
          headers.get("content-security-policy"),
          "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; " +
            "base-uri 'none'",
        )
        assert.strictEqual(headers.get("referrer-policy"), "no-referrer")
        assert.strictEqual(headers.get("cache-control"), "no-store")
        assert.match(headers.get("content-type")!, /^text\/html/)
      }
      const sheet = yield* get("/transfers/style.css")
      assert.match(sheet.headers.get("content-type")!, /^text\/css/)
      assert.notMatch(sheet.text, /url\(|@import/)
    }))

  it.effect("a page without a session asks for one, keeps the token, and binds the way back to the browser", () =>
    Effect.gen(function* () {
      const { made, path, token } = yield* offered()
      const asked = yield* get(path)
      assert.strictEqual(asked.status, 200)
      for (const shown of [made.domain_name, made.source_label, "24 hours after you accept"]) {
        assert.include(asked.text, shown)
      }
      assert.notMatch(asked.text, /<form|<button/)
      assert.notInclude(asked.text, token)
      const href = /href="(https:\/\/id\.example\/[^"]+)"/.exec(asked.text)![1]!.replaceAll("&amp;", "&")
      const { searchParams } = new URL(href)
      assert.deepStrictEqual([...searchParams.keys()], ["for", "state"])
      const state = searchParams.get("state")!
      assert.match(state, /^[A-Za-z0-9_-]{22}$/)
      const set = asked.headers.get("set-cookie")!
      for (const part of ["Max-Age=600", "Path=/;", "HttpOnly", "Secure", "SameSite=Lax"]) {
        assert.include(set, part)
      }
      assert.notMatch(set, /Domain/i)
      const cookie = set.split(";")[0]!
      assert.strictEqual(cookie.split("=")[0], "__Host-bailiwick_return")
      const back = yield* get(`/transfers/resume?state=${state}`, { cookie })
      assert.deepStrictEqual([back.status, back.headers.get("location")], [303, path])
      assert.match(back.headers.get("set-cookie")!, /^__Host-bailiwick_return=; Max-Age=0; Path=\/;.* Secure/)
      const elsewhere: ReadonlyArray<readonly [string, Headers]> = [
        [state, {}],
        [`${state.slice(1)}A`, { cookie }],
        ["", { cookie: "__Host-bailiwick_return=." }],
        [state, { cookie: `__Host-bailiwick_return=${state}.//evil.example` }],
        // Another host of the domain may have set this cookie.
        [state, { cookie: cookie.replace("__Host-", "") }],
      ]
      for (const [given, headers] of elsewhere) {
        const refused = yield* get(`/transfers/resume?state=${given}`, headers)
        assert.deepStrictEqual([refused.status, refused.headers.get("location")], [400, null], given)
      }
      assert.strictEqual((yield* press(path)).status, 401)
      assert.strictEqual(yield* statusOf(made.id), "pending")
    }))

  it.effect("an account other than the recipient is told so, and gets no button", () =>
    Effect.gen(function* () {
      const { bob, made, path } = yield* offered()
      const stranger = yield* signedIn((yield* person()).id)
      const seen = yield* get(path, stranger)
      assert.include(seen.text, "This offer is for another account")
      assert.notInclude(seen.text, "<form")
      assert.notInclude(seen.text, bob.email)
      const pressed = yield* press(path, stranger)
      assert.strictEqual(pressed.status, 403)
      assert.include(pressed.text, "This offer is for another account")
      assert.strictEqual(yield* statusOf(made.id), "pending")
    }))

  it.effect("a form of another site, or without an origin, changes nothing", () =>
    Effect.gen(function* () {
      const { made, path, session } = yield* offered()
      const { made: going, stopPath } = yield* acceptedOffer()
      const attempts: ReadonlyArray<Headers> = [
        { origin: "https://evil.example", "sec-fetch-site": "cross-site" },
        { origin: "null", "sec-fetch-site": "cross-site" },
        { origin: "null", "sec-fetch-site": "same-site" },
        { origin: "null" },
        { origin: "https://evil.example" },
        {},
      ]
      for (const headers of attempts) {
        const form = { ...headers, "content-type": ownForm["content-type"] }
        const said = JSON.stringify(headers)
        assert.strictEqual((yield* call("POST", path, { ...form, ...session }, "a=b")).status, 403, said)
        assert.strictEqual((yield* call("POST", stopPath, form, "a=b")).status, 403, said)
      }
      assert.deepStrictEqual([yield* statusOf(made.id), yield* statusOf(going.id)], ["pending", "accepted"])
      const said = { origin: publicUrl.origin, "content-type": ownForm["content-type"] }
      assert.strictEqual((yield* call("POST", stopPath, said, "")).status, 303)
    }))

  it.effect("the owner stops a transfer without a sign-in, once; then the link explains itself", () =>
    Effect.gen(function* () {
      const { bob, made, stopPath, stopToken } = yield* acceptedOffer()
      for (let i = 0; i < 10; i++) assert.strictEqual((yield* get(stopPath)).status, 200)
      assert.strictEqual(yield* statusOf(made.id), "accepted")
      const { text } = yield* get(stopPath)
      assert.include(text, made.domain_name)
      assert.include(text, bob.email)
      assert.notInclude(text, stopToken)
      const both = yield* Effect.all([press(stopPath), press(stopPath)], { concurrency: 2 })
      assert.deepStrictEqual(both.map(({ status }) => status).sort(), [303, 409])
      const done = both.find(({ status }) => status === 303)!
      assert.strictEqual(done.headers.get("location"), "/transfers/done/stopped")
      assert.strictEqual(yield* statusOf(made.id), "reversed")
      assert.include((yield* get(stopPath)).text, "This link was used already")
      assert.strictEqual((yield* get("/transfers/done/stopped")).status, 200)
    }))

  it.effect("a link of an ended transfer says how it ended, and an unknown link that it is unknown", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const transfers = yield* Transfers
      const cases = {
        cancelled: "was cancelled",
        declined: "was declined",
        expired: "expired on",
        reversed: "and then stopped",
        completed: "is complete",
      }
      for (const [how, words] of Object.entries(cases)) {
        const { alice, bob, made, path, session } = yield* offered()
        const command = { commandId: CommandId.make(randomUUID()), transferId: made.id }
        const past = new Date(Date.parse(made.initiated_at) - 1)
        if (how === "cancelled") yield* transfers.cancel({ ...command, accountId: alice.id })
        if (how === "declined") yield* transfers.decline({ ...command, accountId: bob.id })
        if (how === "expired") {
          yield* sql`update transfers set expires_at = ${past} where id = ${made.id}::uuid`
        }
        if (how === "reversed" || how === "completed") yield* accept(bob.id, made.id)
        if (how === "reversed") yield* transfers.stop(command)
        if (how === "completed") {
          yield* sql`update transfers set cooloff_until = ${past} where id = ${made.id}::uuid`
          yield* transfers.settle(made.id)
          const stop = yield* get(`/transfers/stop/${yield* tokenOf("stop", made.id)}`)
          assert.include(stop.text, "can no longer be stopped here")
        }
        const seen = yield* get(path, session)
        assert.strictEqual(seen.status, 200, how)
        assert.include(seen.text, words, how)
        assert.notInclude(seen.text, "<form", how)
        const pressed = yield* press(path, session)
        assert.strictEqual(pressed.status, 409, how)
        assert.include(pressed.text, words, how)
        assert.strictEqual(yield* statusOf(made.id), how)
      }
      for (const path of ["/transfers/accept/x", `/transfers/stop/${"A".repeat(43)}`, "/transfers/accept/%20"]) {
        const seen = yield* get(path)
        assert.strictEqual(seen.status, 404, path)
        assert.include(seen.text, "This link is not known")
      }
      assert.strictEqual((yield* press("/transfers/accept/x")).status, 404)
    }))

  it.effect("both links show the new DKIM record once the offer is accepted", () =>
    Effect.gen(function* () {
      const { made, path, session } = yield* offered()
      assert.strictEqual((yield* press(path, session, { answer: "accept", rotate_dkim: "yes" })).status, 303)
      const { sql } = yield* Database
      const [key] = yield* sql<{ selector: string; public_key: string }>`
        select selector, public_key from dkim_keys where transfer_id = ${made.id}::uuid`
      for (const link of [path, `/transfers/stop/${yield* tokenOf("stop", made.id)}`]) {
        const { text } = yield* get(link)
        assert.include(text, `${key!.selector}._domainkey.${made.domain_name}`)
        assert.include(text, `v=DKIM1; k=ed25519; p=${key!.public_key}`)
      }
      assert.include((yield* get("/transfers/done/accepted")).text, "DKIM key")
    }))

  it.effect("a transfer ended by force is not called stopped, nor the domain its old owner's", () =>
    Effect.gen(function* () {
      const { bob, made, path, session, stopPath } = yield* acceptedOffer()
      const admin = yield* person({ platform_admin: true })
      yield* force(admin.id, made.domain_id, bob.email)
      for (const { text } of [yield* get(path, session), yield* get(stopPath)]) {
        assert.include(text, "ended before it took effect")
        assert.notMatch(text, /stopped|stays/)
      }
    }))

  it.effect("no token gets into the audit or a trace", () =>
    Effect.gen(function* () {
      const { path, session, stopPath, stopToken, token } = yield* acceptedOffer()
      yield* press(path, session)
      yield* press(stopPath)
      yield* press(stopPath)
      yield* get(`/transfers/stop/${token}`)
      const { sql } = yield* Database
      // A recognised account's failure is recorded before the answer.
      const rows = yield* sql<{ row: string }>`select to_jsonb(audit_records)::text as row from audit_records`
      const traced = spans.map(({ attributes, name }) => JSON.stringify([name, [...attributes]]))
      for (const written of [rows.map(({ row }) => row).join("\n"), traced.join("\n")]) {
        assert.include(written, "/transfers/accept/{token}")
        for (const secret of [token, stopToken]) assert.notInclude(written, secret)
      }
    }))
})
