/** Links that show an account's webhooks in a frame: over HTTP, and in real Chromium on a page of another site. */
import { AxePuppeteer } from "@axe-core/puppeteer"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import type { Frame } from "puppeteer-core"
import { Database } from "../../../../services/platform/database/Database.ts"
import { pruneEmbedLinks } from "../../../../services/console/EmbedLinks.ts"
import { codeOf } from "../../../support/Fixtures.ts"
import { visitor } from "../../../support/Browser.ts"
import { Chromium, pictured } from "./ConsoleBrowser.ts"
import { type Browser, browser, ownPage, signedIn, staged } from "./ConsoleStage.ts"

/** A site of another origin, whose page frames the address in its query. */
const site = Effect.acquireRelease(
  Effect.promise(() =>
    new Promise<{ readonly origin: string; readonly close: () => void }>((resolve) => {
      const server = createServer((request, response) => {
        const src = new URL(request.url ?? "/", "http://localhost").searchParams.get("src") ?? "about:blank"
        response.setHeader("content-type", "text/html")
        response.end(
          `<!doctype html><html lang="en"><title>A product</title><iframe title="Webhooks" width="360" height="900" src="${
            src.replaceAll("&", "&amp;").replaceAll('"', "&quot;")
          }"></iframe>`,
        )
      })
      server.listen(0, "127.0.0.1", () => {
        const { port } = server.address() as AddressInfo
        resolve({ origin: `http://localhost:${port}`, close: () => server.close() })
      })
    })
  ),
  ({ close }) => Effect.sync(close),
)

/** The site that may frame us, and one that may not. */
class Sites extends Context.Service<Sites, { readonly allowed: string; readonly other: string }>()(
  "bailiwick/test/http/console/Sites",
) {
  static readonly layer = Layer.effect(
    Sites,
    Effect.gen(function* () {
      return { allowed: (yield* site).origin, other: (yield* site).origin }
    }),
  )
}

const stage = Layer.unwrap(Effect.map(Sites, ({ allowed }) => staged({ EMBED_ORIGINS: allowed }))).pipe(
  Layer.merge(Chromium.layer),
  Layer.provideMerge(Sites.layer),
)

const keyOf = Effect.fnUntraced(function* (one: Browser) {
  const made = yield* one.ask("POST", "/v1/api-keys/", { json: { name: "embed" }, headers: ownPage })
  assert.strictEqual(made.status, 201, made.text)
  return made.body as { readonly id: string; readonly key: string }
})

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

/** A new key of Alice's, and a link that it made. */
const linked = Effect.gen(function* () {
  const alice = yield* signedIn("Alice")
  const { id, key } = yield* keyOf(alice)
  const one = yield* browser
  const made = yield* one.ask("POST", "/v1/console/embed-links", { json: {}, headers: bearer(key) })
  assert.strictEqual(made.status, 201, made.text)
  const url = new URL(made.body.url)
  return { alice, one, id, key, url, token: url.hash.slice(1), expiresAt: Date.parse(made.body.expires_at) }
})

const open = (one: Browser, token: string, headers: Readonly<Record<string, string>> = ownPage) =>
  one.ask("POST", "/v1/console/embed-sessions", { json: { token }, headers })

const waitFor = (frame: Frame, words: string) =>
  Effect.promise(() => frame.waitForFunction((words: string) => document.body.innerText.includes(words), {}, words))

const headed = (frame: Frame, words: string) =>
  Effect.promise(() =>
    frame.waitForFunction((words: string) => document.querySelector("h1")?.textContent === words, {}, words)
  )

const pressIn = (frame: Frame, words: string) =>
  Effect.promise(() =>
    frame.waitForFunction(
      (words: string) => {
        const root = document.querySelector("dialog[open]") ?? document
        const found = [...root.querySelectorAll<HTMLElement>("button, a")].find((one) =>
          one.textContent?.trim() === words
        )
        found?.click()
        return found !== undefined
      },
      {},
      words,
    )
  )

layer(stage, { excludeTestServices: true, timeout: "4 minutes" })("an account's webhooks in a frame", (it) => {
  it.effect("an API key makes a link that opens one session, once", () =>
    Effect.gen(function* () {
      const { alice, expiresAt, key, one, token, url } = yield* linked
      assert.strictEqual(url.pathname + url.search, "/console/embed")
      assert.match(token, /^mail_l_[A-Za-z0-9_-]{43}$/)
      assert.isAtMost(expiresAt - Date.now(), 300_000)
      const make = (json: unknown) => one.ask("POST", "/v1/console/embed-links", { json, headers: bearer(key) })
      assert.strictEqual((yield* make({ expires_in: 59 })).status, 422)
      assert.strictEqual((yield* make({ expires_in: 601 })).status, 422)
      const byPerson = yield* alice.ask("POST", "/v1/console/embed-links", { json: {}, headers: ownPage })
      assert.deepStrictEqual(codeOf(byPerson), [403, "forbidden"])
      assert.strictEqual((yield* one.ask("POST", "/v1/console/embed-links", { json: {} })).status, 401)

      const foreign = { origin: "https://evil.example", "sec-fetch-site": "cross-site" }
      assert.deepStrictEqual(codeOf(yield* open(one, token, foreign)), [403, "csrf_rejected"])
      const opened = yield* open(one, token)
      assert.strictEqual(opened.status, 201, opened.text)
      assert.isNull(opened.headers.get("set-cookie"))
      assert.deepInclude(opened.body.session, { person: null, operator: false, issuers: [] })
      assert.deepStrictEqual(codeOf(yield* open(one, token)), [401, "invalid_credentials"])
      assert.deepStrictEqual(codeOf(yield* open(one, `mail_l_${"A".repeat(43)}`)), [401, "invalid_credentials"])

      const { sql } = yield* Database
      const rows = yield* sql<{ text: string }>`select l::text as text from embed_links l`
      for (const secret of [token, opened.body.token]) assert.notInclude(JSON.stringify(rows), secret)
    }))

  it.effect("a request that is repeated under its key makes no other link, and its receipt has no token", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const { key, one } = yield* linked
      const count = Effect.map(sql<{ n: number }>`select count(*)::int as n from embed_links`, ([row]) => row!.n)
      const before = yield* count
      const headers = { ...bearer(key), "idempotency-key": crypto.randomUUID() }
      const make = (json: unknown) => one.ask("POST", "/v1/console/embed-links", { json, headers })
      // Both at once: one makes the link, the other waits for its receipt.
      const answers = yield* Effect.all([make({}), make({})], { concurrency: 2 })
      const [first, again] = answers.sort((a, b) => Number(a.body.url === null) - Number(b.body.url === null))
      assert.deepStrictEqual([first!.status, again!.status], [201, 201], answers.map(({ text }) => text).join())
      const token = new URL(first!.body.url).hash.slice(1)
      assert.deepStrictEqual(again!.body, { url: null, expires_at: first!.body.expires_at })
      assert.deepStrictEqual([first!, again!].map((one) => one.headers.get("idempotency-replayed")), [null, "true"])
      assert.strictEqual(yield* count, before + 1)
      assert.strictEqual((yield* make({ expires_in: 61 })).status, 409)
      const receipts = yield* sql<{ text: string }>`select r::text as text from idempotency_receipts r`
      assert.notInclude(JSON.stringify(receipts), token)
      assert.strictEqual((yield* open(one, token)).status, 201)
    }))

  it.effect("links and sessions that have ended go, batch by batch, and the others stay", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const { token, one } = yield* linked
      const ids = Array.from({ length: 2_500 }, () => crypto.randomUUID())
      yield* sql`
        insert into embed_links (id, account_id, key_id, token_hash, created_at, expires_at)
        select u.id, l.account_id, l.key_id, sha256(u.id::text::bytea), l.created_at, l.created_at
        from unnest(${ids}::uuid[]) u(id), (select * from embed_links where session_hash is null limit 1) l`
      assert.isAtLeast(yield* pruneEmbedLinks, ids.length)
      const left = yield* sql`select from embed_links where expires_at <= created_at and session_hash is null`
      assert.lengthOf(left, 0)
      assert.strictEqual((yield* open(one, token)).status, 201)
    }))

  it.effect("its session reaches webhooks, deliveries and event types alone", () =>
    Effect.gen(function* () {
      const { one, token } = yield* linked
      const { body } = yield* open(one, token)
      const headers = bearer(body.token)
      const reads = [
        "/v1/webhooks/?include_paused=true",
        "/v1/webhook-deliveries",
        "/v1/event-types",
        "/v1/webhook-stats",
        "/v1/webhook-stats/hours",
      ]
      for (const path of reads) assert.strictEqual((yield* one.ask("GET", path, { headers })).status, 200, path)
      const made = yield* one.ask("POST", "/v1/webhooks/", {
        json: { url: "https://hooks.example.com/frame", events: ["email.sent"] },
        headers,
      })
      assert.strictEqual(made.status, 201, made.text)
      const others = [
        "/v1/api-keys/",
        "/v1/account",
        "/v1/domains",
        "/v1/notifications/",
        "/v1/webhook-deliveries/stream",
      ]
      for (const path of others) {
        assert.strictEqual((yield* one.ask("GET", path, { headers })).status, 403, path)
      }
      const again = yield* one.ask("POST", "/v1/console/embed-links", { json: {}, headers })
      assert.deepStrictEqual(codeOf(again), [403, "forbidden"])
      assert.strictEqual((yield* one.ask("GET", "/v1/me/requests", { headers })).status, 401)
    }))

  it.effect("ends with its key, with its hour, and a link with its time", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const { alice, id, one, token } = yield* linked
      const { body } = yield* open(one, token)
      const status = Effect.map(one.ask("GET", "/v1/event-types", { headers: bearer(body.token) }), ({ status }) =>
        status)
      assert.strictEqual(yield* status, 200)
      yield* alice.ask("DELETE", `/v1/api-keys/${id}`, { headers: ownPage })
      assert.strictEqual(yield* status, 401)

      const second = yield* linked
      const { body: other } = yield* open(second.one, second.token)
      yield* sql`update embed_links set session_ends_at = created_at where session_ends_at is not null`
      const ended = yield* second.one.ask("GET", "/v1/event-types", { headers: bearer(other.token) })
      assert.deepStrictEqual(codeOf(ended), [401, "invalid_credentials"])

      const late = yield* linked
      yield* sql`update embed_links set expires_at = created_at where session_hash is null`
      assert.deepStrictEqual(codeOf(yield* open(late.one, late.token)), [401, "invalid_credentials"])
    }))

  it.effect("only its page may be framed, and by the allowed origins alone", () =>
    Effect.gen(function* () {
      const { allowed } = yield* Sites
      const one = yield* browser
      const policyOf = (path: string) =>
        Effect.map(one.ask("GET", path), ({ headers }) => headers.get("content-security-policy")!.split("; "))
      assert.include(yield* policyOf("/console/embed"), `frame-ancestors ${allowed}`)
      for (const path of ["/console/", "/console/webhooks", "/console/embed/x", "/"]) {
        assert.include(yield* policyOf(path), "frame-ancestors 'none'", path)
      }
    }))

  it.effect("a page of another site shows them, and a frame that is loaded anew says that it has ended", () =>
    Effect.gen(function* () {
      const { allowed } = yield* Sites
      const { url } = yield* linked
      const { complaints, page } = yield* visitor(yield* Chromium)
      yield* Effect.promise(() => page.goto(`${allowed}/?src=${encodeURIComponent(url.href)}`))
      const frame = yield* Effect.promise(async () => (await (await page.waitForSelector("iframe"))!.contentFrame())!)
      yield* headed(frame, "Webhooks")
      yield* waitFor(frame, "Create a webhook…")
      yield* pictured(page, "embedded")
      const shown = yield* Effect.promise(() =>
        frame.evaluate(() => ({
          hash: location.hash,
          path: location.pathname,
          menu: [...document.querySelectorAll(".menu a")].map((one) => one.textContent),
          kept: document.cookie + JSON.stringify([{ ...localStorage }, { ...sessionStorage }]),
          wider: document.documentElement.scrollWidth > innerWidth,
        }))
      )
      assert.deepStrictEqual(shown, {
        hash: "",
        path: "/console/embed",
        menu: ["Webhooks", "Deliveries", "Event types"],
        kept: "[{},{}]",
        wider: false,
      })
      yield* pressIn(frame, "Event types")
      yield* headed(frame, "Event types")
      yield* waitFor(frame, "The tracking pixel was loaded")
      yield* pressIn(frame, "Deliveries")
      yield* headed(frame, "Deliveries")
      const { violations } = yield* Effect.promise(() => new AxePuppeteer(page).include(["iframe", "body"]).analyze())
      assert.deepStrictEqual(violations.map(({ id }) => id), [])
      assert.deepStrictEqual(complaints, [])

      yield* Effect.promise(() => frame.evaluate(() => location.reload()))
      yield* headed(frame, "This view has ended")
      yield* pictured(page, "embedded-ended")
    }))

  it.effect("a page of an origin that is not allowed shows nothing, and does not use the link up", () =>
    Effect.gen(function* () {
      const { other } = yield* Sites
      const { one, token, url } = yield* linked
      const { complaints, page } = yield* visitor(yield* Chromium)
      yield* Effect.promise(() => page.goto(`${other}/?src=${encodeURIComponent(url.href)}`, { waitUntil: "load" }))
      const frame = yield* Effect.promise(async () => (await (await page.waitForSelector("iframe"))!.contentFrame())!)
      assert.match(frame.url(), /^chrome-error:/)
      assert.include(complaints.join("\n"), "frame-ancestors")
      assert.strictEqual((yield* open(one, token)).status, 201)
    }))
})

layer(staged(), { excludeTestServices: true, timeout: "2 minutes" })("an installation without EMBED_ORIGINS", (it) => {
  it.effect("makes no link, opens no session, and has no page for a frame", () =>
    Effect.gen(function* () {
      const alice = yield* signedIn("Alice")
      const { key } = yield* keyOf(alice)
      const made = yield* alice.ask("POST", "/v1/console/embed-links", { json: {}, headers: bearer(key) })
      assert.deepStrictEqual(codeOf(made), [404, "not_found"])
      assert.deepStrictEqual(codeOf(yield* open(alice, "x")), [404, "not_found"])
      assert.deepStrictEqual(codeOf(yield* alice.ask("GET", "/console/embed")), [404, "not_found"])
    }))
})
