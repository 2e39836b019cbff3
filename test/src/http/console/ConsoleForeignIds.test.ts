/**
 * Ids of other people and of what is theirs, in every route of the console that takes an id, and in every operation of
 * the API that the console knows and that takes one: each is answered as an id that nothing has, and no page, title or
 * answer names anything foreign. Asked by a person of another institution, by another account, and by a frame that shows
 * that account's webhooks.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { randomUUID } from "node:crypto"
import { readFileSync } from "node:fs"
import type { HTTPResponse, Page } from "puppeteer-core"
import { routes } from "../../../../console/contract/RouteTable.ts"
import { Directory } from "../../../../services/directory/Directory.ts"
import { demoIds } from "../../../../src/embedded/DemoDirectory.ts"
import { access, institution, member, owner, person, project } from "../../../support/TestIdentity.ts"
import { Chromium, follow, heading, inConsole, quiet } from "./ConsoleBrowser.ts"
import { type Browser, browser, ownPage, signedIn, staged } from "./ConsoleStage.ts"

/** A word of every name that the visitor must not learn. */
const secret = "Quillfeather"

/** The console's paths that take an id. */
const screens = [
  ...new Set(
    [
      ...readFileSync(new URL("../../../../console/Screens.tsx", import.meta.url), "utf8").matchAll(
        /path: "([^"]*:[^"]*)"/g,
      ),
    ]
      .map(([, path]) => path!),
  ),
]

const withId = Object.values(routes).filter(([, path]) => path.includes(":"))

/** The paths of the API that are read by an id, and the list that an id narrows. */
const reads = [
  ...withId.filter(([method]) => method === "GET").map(([, path]) => path),
  "/v1/webhook-deliveries?webhook_id=:id",
]

/** The operations of the mail API that change what an id names. */
const writes = withId.filter(([method, path]) =>
  method !== "GET" &&
  /^\/v1\/(webhooks|webhook-deliveries|domains|domain-transfers|api-keys|notifications)\//.test(path)
)

/** By the specification its answer to an account that is not the recipient is 403, which says no more of the transfer. */
const acceptById = "/v1/domain-transfers/by-id/:transfer_id/accept"

/** Bodies of the operations that refuse a request without one. */
const bodies: Readonly<Record<string, object>> = {
  "/v1/webhooks/:webhook_id": { description: "mine" },
  "/v1/webhooks/:webhook_id/replay": { since: "2026-01-01T00:00:00.000Z" },
  "/v1/domains/:domain_id/transfer": { target_email: "carol@platform.example" },
}

const bodyOf = (method: string, path: string) => ["GET", "DELETE"].includes(method) ? null : bodies[path] ?? {}

const filled = (path: string, id: string) => path.replaceAll(/:[a-z_]+/g, id)

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi
/** A text without the ids of its request, its time, and the id that it was asked for. */
const blank = (text: string) => text.replaceAll(uuid, "<id>").replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "<time>")

const tells = (text: string) => text.toLowerCase().includes(secret.toLowerCase())

/** The answers of the API that a page got and that name something foreign; streams have no end to wait for. */
const leaks = (page: Page) => {
  const found: Array<Promise<ReadonlyArray<string>>> = []
  page.on("response", (response: HTTPResponse) => {
    const stream = response.headers()["content-type"]?.startsWith("text/event-stream")
    if (stream || !new URL(response.url()).pathname.startsWith("/v1/")) return
    // The body of an answer to a page that was left is gone.
    const text = response.text().catch(() => "")
    found.push(text.then((text) => tells(text) ? [`${response.url()}: ${text}`] : []))
  })
  return Effect.promise(async () => (await Promise.all(found)).flat())
}

/** What the page shows once it asks for nothing any more: its title and its text, without the id. */
const shown = (page: Page, calm: () => Promise<void>, what: string) =>
  Effect.promise(async () => {
    await page.waitForSelector("h1")
    await calm()
    const [title, text, source] = await page.evaluate(() =>
      [document.title, document.body.innerText, document.documentElement.outerHTML] as const
    )
    assert.isFalse(tells(title + source), `${what}: ${title} ${text}`)
    return [title, text].map(blank)
  })

/** Asks the server in the visitor's session, as the page does. */
const asking = (visitor: Browser) => (path: string, method = "GET", body: object | null = null) =>
  visitor.ask(method, path, { headers: ownPage, ...(body === null ? {} : { json: body }) }).pipe(
    Effect.map(({ headers, status, text }) => {
      assert.isFalse(tells(text), `${method} ${path}: ${text}`)
      return blank(`${status} ${headers.get("etag")} ${text}`)
    }),
  )

const made = (reply: Effect.Success<ReturnType<Browser["ask"]>>) => {
  assert.oneOf(reply.status, [200, 201], reply.text)
  return reply.body
}

/** What is Alice's: by name, the id of each, and how she reads it. */
const aliceHas = Effect.gen(function* () {
  const alice = yield* signedIn("Alice")
  const post = (path: string, json: object = {}) =>
    Effect.map(alice.ask("POST", path, { json, headers: ownPage }), made)
  const get = (path: string) => Effect.map(alice.ask("GET", path), made)

  const domain = randomUUID()
  const line = { kind: "domain", id: domain, version: 1, name: `${secret.toLowerCase()}.example` }
  const rest = { account_id: demoIds.alice, workspace_id: demoIds.alder, verified_at: "2025-01-01T00:00:00.000Z" }
  yield* (yield* Directory).apply([JSON.stringify({ ...line, ...rest, dkim_selector: "s1" })])
  const url = `https://${secret.toLowerCase()}.example/`
  const hook = yield* post("/v1/webhooks/", { url, events: ["email.bounced"], description: secret })
  yield* post(`/v1/webhooks/${hook.id}/test`)
  const key = yield* post("/v1/api-keys/", { name: secret })
  const offer = { target_email: "carol@platform.example", note: secret }
  const transfer = yield* post(`/v1/domains/${domain}/transfer`, offer)
  const { items: [delivery] } = yield* get(`/v1/webhook-deliveries?webhook_id=${hook.id}`)
  const carol = yield* signedIn("Carol")
  const { items: [notice] } = made(yield* carol.ask("GET", "/v1/notifications"))
  const state = Effect.all([
    get(`/v1/webhooks/${hook.id}`),
    get(`/v1/domains/${domain}`),
    get(`/v1/domain-transfers/${transfer.id}`),
    get("/v1/api-keys/"),
    Effect.map(carol.ask("GET", "/v1/notifications"), made),
  ])
  assert.isTrue(tells(JSON.stringify(yield* state)), "its owner is told")
  const ids = { hook, delivery, key, transfer, notice } as Readonly<Record<string, { readonly id: string }>>
  return {
    ids: {
      alice: demoIds.alice,
      workspace: demoIds.alder,
      domain,
      ...Object.fromEntries(Object.entries(ids).map(([name, { id }]) => [name, id])),
    },
    state,
  }
})

/** What is of an institution that no visitor of this test belongs to. */
const mossHas = Effect.gen(function* () {
  const moss = yield* institution({ name: `${secret} Moss` })
  const mo = yield* person({ display_name: `Mo ${secret}` })
  yield* member(moss, mo, "administrator")
  const site = yield* project(moss, { name: `${secret} Site` })
  yield* owner(site, mo)
  return { mo, moss, site, granted: yield* access(moss, site, mo) }
})

const stage = Layer.merge(staged({ EMBED_ORIGINS: "https://app.example.com" }), Chromium.layer)

layer(stage, { excludeTestServices: true, timeout: "10 minutes" })("foreign ids at the console", (it) => {
  const visitors = [
    ["Sam", "/console/requests", "My requests"],
    ["Bob", "/console/overview", "Overview"],
  ] as const
  for (const [who, home, title] of visitors) {
    it.effect(`${who} learns nothing of them, and changes nothing`, () =>
      Effect.gen(function* () {
        const alice = yield* aliceHas
        const foreign = Object.entries({ ...alice.ids, ...(yield* mossHas) })
        const before = yield* alice.state
        const { open, page } = yield* inConsole(who, {}, home)
        yield* heading(page, title)
        const ask = asking(yield* signedIn(who))
        const told = leaks(page)
        const calm = quiet(page)
        assert.isAtLeast(screens.length, 6)
        assert.isAtLeast(reads.length, 20)
        assert.isAtLeast(writes.length, 12)

        const unknown = randomUUID()
        for (const path of screens) {
          const shell = yield* ask(filled(path, unknown))
          yield* open(filled(path, unknown))
          const expected = yield* shown(page, calm, `${path} of nothing`)
          for (const [what, id] of foreign) {
            assert.strictEqual(yield* ask(filled(path, id)), shell, `${path} of ${what}`)
            yield* follow(page, filled(path, id))
            assert.deepStrictEqual(yield* shown(page, calm, `${path} of ${what}`), expected, `${path} of ${what}`)
          }
        }
        let answered = 0
        for (const path of reads) {
          const expected = yield* ask(filled(path, unknown))
          // The route refuses this kind of visitor before it looks at the id.
          if (expected.startsWith("401 ")) continue
          answered++
          for (const [what, id] of foreign) {
            assert.strictEqual(yield* ask(filled(path, id)), expected, `${path} of ${what}`)
          }
        }
        assert.isAtLeast(answered, 8)
        for (const [method, path] of writes) {
          const write = (id: string) => ask(filled(path, id), method, bodyOf(method, path))
          const expected = yield* write(unknown)
          assert.match(expected, who === "Bob" ? /^404 / : /^40[14] /, `${method} ${path}`)
          for (const [what, id] of foreign) {
            const seen = yield* write(id)
            if (who === "Bob" && what === "transfer" && path === acceptById) {
              assert.match(seen, /^403 .*"wrong_recipient"/)
              assert.isFalse(tells(seen), seen)
            } else assert.strictEqual(seen, expected, `${method} ${path} of ${what}`)
          }
        }
        assert.deepStrictEqual(yield* told, [])
        assert.deepStrictEqual(yield* alice.state, before)
      }))
  }

  it.effect("a frame with Bob's webhooks learns nothing of them, and changes nothing", () =>
    Effect.gen(function* () {
      const alice = yield* aliceHas
      const foreign = Object.entries(alice.ids)
      const before = yield* alice.state
      const bob = yield* signedIn("Bob")
      const { key } = made(yield* bob.ask("POST", "/v1/api-keys/", { json: { name: "frame" }, headers: ownPage }))
      const frame = yield* browser
      const headers = { authorization: `Bearer ${key}` }
      const { url } = made(yield* frame.ask("POST", "/v1/console/embed-links", { json: {}, headers }))
      const sent = { json: { token: new URL(url).hash.slice(1) }, headers: ownPage }
      const { token } = made(yield* frame.ask("POST", "/v1/console/embed-sessions", sent))
      const asked = Effect.fnUntraced(function* (method: string, path: string, id: string) {
        const body = bodyOf(method, path)
        const json = body === null ? {} : { json: body }
        const reply = yield* frame.ask(method, filled(path, id), {
          headers: { authorization: `Bearer ${token}` },
          ...json,
        })
        assert.isFalse(tells(reply.text), reply.text)
        return [reply.status, blank(reply.text)] as const
      })
      const unknown = randomUUID()
      let reached = 0
      for (const [method, path] of [...reads.map((path) => ["GET", path] as const), ...writes]) {
        const expected = yield* asked(method, path, unknown)
        // The session is none of the identity API.
        if (expected[0] === 401) continue
        if ([200, 404].includes(expected[0])) reached++
        for (const [what, id] of foreign) {
          assert.deepStrictEqual(yield* asked(method, path, id), expected, `${method} ${path} of ${what}`)
        }
      }
      assert.isAtLeast(reached, 12)
      assert.deepStrictEqual(yield* alice.state, before)
    }))
})
