import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer, Redacted } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Audit } from "../../../../services/platform/observability/Audit.ts"
import { html } from "../../../../services/platform/mail/Html.ts"
import { MailTransport } from "../../../../services/platform/mail/MailTransport.ts"
import { DevMailbox } from "../../../../src/embedded/DevMailbox.ts"
import { DevKey } from "../../../../src/http/dev/DevKey.ts"
import * as Pages from "../../../../src/http/dev/DevMailboxPage.ts"
import { RejectionAudit } from "../../../../src/http/edge/RejectionAudit.ts"
import { Server } from "../../../../src/http/Server.ts"
import { TestDatabase } from "../../../support/TestDatabase.ts"

class Home extends Context.Service<Home, { readonly home: string }>()("bailiwick/test/Home") {
  static readonly layer = Layer.effect(
    Home,
    Effect.acquireRelease(
      Effect.sync(() => ({ home: mkdtempSync(join(tmpdir(), "bailiwick-dev-")) })),
      ({ home }) => Effect.sync(() => rmSync(home, { recursive: true })),
    ),
  )
}

const fixtureAt = (publicUrl: URL) =>
  Layer.unwrap(Effect.map(Home, ({ home }) =>
    Layer.merge(
      Server.layer(Pages.layer(home), { host: "127.0.0.1", port: 0 }),
      DevMailbox.layer({ home, from: { name: "Bailiwick", address: "no-reply@localhost" } }),
    ))).pipe(
      Layer.provide(RejectionAudit.layer.pipe(Layer.provide(Audit.layer))),
      Layer.provideMerge(Layer.mergeAll(DevKey.layer(publicUrl), Home.layer, TestDatabase.layer)),
    )

const get = Effect.fnUntraced(function* (path: string, cookie?: string) {
  const { url } = yield* Server
  return yield* Effect.promise(async () => {
    const response = await fetch(url + path, {
      redirect: "manual",
      ...(cookie === undefined ? {} : { headers: { cookie } }),
    })
    return { status: response.status, headers: response.headers, text: await response.text() }
  })
})

const id = "01900000-0000-7000-8000-000000000001"
const attack = '<script>alert(1)</script> & "quoted"'

layer(fixtureAt(new URL("http://127.0.0.1:8080")), { excludeTestServices: true })("/dev/mailbox", (it) => {
  it.effect("asks for the key, takes it once, and recognises a cookie from then on", () =>
    Effect.gen(function* () {
      const { cookie, key } = yield* DevKey
      const paths = ["/dev/mailbox", `/dev/mailbox/${id}`, "/dev/mailbox?key=wrong", "/dev/mailbox?key="]
      for (const path of paths) {
        const refused = yield* get(path, `${cookie.name}=wrong`)
        assert.strictEqual(refused.status, 401, path)
        assert.match(refused.text, /<form method="get">/)
        assert.notInclude(refused.text, Redacted.value(key))
        assert.isNull(refused.headers.get("set-cookie"))
      }
      const admitted = yield* get(`/dev/mailbox?key=${Redacted.value(key)}`)
      assert.strictEqual(admitted.status, 303)
      assert.strictEqual(admitted.headers.get("location"), "/dev/mailbox")
      const set = admitted.headers.get("set-cookie")!
      assert.match(set, /^bailiwick_dev_/)
      assert.notMatch(set, /; Secure/)
      assert.match(set, /; HttpOnly/)
      assert.match(set, /; SameSite=Strict/)
      assert.match(set, /; Path=\/dev(;|$)/)
      const listed = yield* get("/dev/mailbox", set.split(";")[0])
      assert.strictEqual(listed.status, 200)
      assert.include(listed.text, "No mail yet")
    }))

  it.effect("shows any message as text, under a policy without scripts", () =>
    Effect.gen(function* () {
      const { cookie, key } = yield* DevKey
      const { deliver } = yield* MailTransport
      yield* deliver({
        id,
        messageId: `<${id}@localhost>`,
        recipient: "bob@example.com",
        subject: `Hi ${attack}`,
        text: `${attack}\nhttp://127.0.0.1:8080/transfers/accept/abc"><script>`,
        html: html`<p>${attack}</p><img src="https://tracker.example/x">`.text,
        date: new Date("2026-01-02T03:04:05Z"),
      }, Effect.never)
      const admitted = `${cookie.name}=${Redacted.value(key)}`
      const list = yield* get("/dev/mailbox", admitted)
      assert.include(list.text, `/dev/mailbox/${id}`)
      assert.include(list.text, "bob@example.com")
      const one = yield* get(`/dev/mailbox/${id}`, admitted)
      assert.strictEqual(one.status, 200)
      assert.include(one.text, `<a href="http://127.0.0.1:8080/transfers/accept/abc">`)
      assert.include(one.text, "&lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;quoted&quot;")
      assert.include(one.text, "&lt;img src=")
      for (const { headers, text } of [list, one]) {
        assert.notMatch(text, /<script|<img|<style| on\w+=/i)
        const policy = headers.get("content-security-policy")!
        assert.include(policy, "default-src 'none'")
        assert.include(policy, "frame-ancestors 'none'")
        assert.notInclude(policy, "unsafe")
        assert.strictEqual(headers.get("referrer-policy"), "no-referrer")
        assert.strictEqual(headers.get("cache-control"), "no-store")
      }
      for (const other of ["x", "..%2f..%2fkeys.json", id.replace("1", "2")]) {
        assert.strictEqual((yield* get(`/dev/mailbox/${other}`, admitted)).status, 404, other)
      }
    }))
})

layer(fixtureAt(new URL("https://localhost:8443")), { excludeTestServices: true })(
  "/dev/mailbox behind https",
  (it) => {
    it.effect("sets the key's cookie for this host alone", () =>
      Effect.gen(function* () {
        const { key } = yield* DevKey
        const set = (yield* get(`/dev/mailbox?key=${Redacted.value(key)}`)).headers.get("set-cookie")!
        assert.match(set, /^__Host-bailiwick_dev_[0-9a-f]{8}=/)
        for (const part of ["; HttpOnly", "; Secure", "; SameSite=Strict"]) assert.include(set, part)
        assert.match(set, /; Path=\/(;|$)/)
        assert.notMatch(set, /Domain/i)
        assert.strictEqual((yield* get("/dev/mailbox", set.split(";")[0])).status, 200)
        assert.strictEqual((yield* get("/dev/mailbox", set.split(";")[0]!.replace("__Host-", ""))).status, 401)
      }))
  },
)
