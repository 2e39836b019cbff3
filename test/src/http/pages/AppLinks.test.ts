/** The landing page, and every link that mails and notices can hold. */
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import { randomUUID } from "node:crypto"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { appPaths, filledPath } from "../../../../services/platform/AppPaths.ts"
import { browser, signIn, staged } from "../console/ConsoleStage.ts"

const params = () => {
  const [webhook_id, delivery_id, transfer_id, link_request_id, review_id, project_id] = Array.from(
    { length: 6 },
    () => randomUUID(),
  )
  return { webhook_id, delivery_id, transfer_id, link_request_id, review_id, project_id, token: "A".repeat(43) }
}

const isPage = (text: string) => /^\s*<!doctype html>/.test(text)

layer(staged(), { excludeTestServices: true, timeout: "2 minutes" })("links of mails and notices", (it) => {
  it.effect("each leads to a page of this program", () =>
    Effect.gen(function* () {
      const one = yield* browser
      const ids = params()
      const led: Array<string> = []
      for (const [name, pattern] of Object.entries(appPaths)) {
        const answer = yield* one.ask("GET", filledPath(pattern, ids))
        const last = answer.status === 303 ? yield* one.ask("GET", answer.location) : answer
        // No link has the token here: the page says so, and is a page nevertheless.
        assert.strictEqual(last.status, pattern.includes(":token") ? 404 : 200, name)
        assert.isTrue(isPage(last.text), name)
        if (answer.status === 303) led.push(answer.location)
      }
      assert.deepStrictEqual(led, [
        `/console/webhooks/${ids.webhook_id}`,
        `/console/deliveries/${ids.delivery_id}`,
        "/console/api-keys",
        `/console/transfers/${ids.transfer_id}`,
        "/console/requests",
        "/console/decide",
        `/console/decide/${ids.review_id}`,
        `/console/projects/${ids.project_id}`,
      ])
    }))

  it.effect("a sign-in returns to the screen of a link, and an id cannot lead elsewhere", () =>
    Effect.gen(function* () {
      const one = yield* browser
      const { location } = yield* one.ask("GET", `/webhooks/${randomUUID()}`)
      assert.strictEqual((yield* signIn(one, "Alice", `?return=${location}`)).location, location)
      const strange = yield* one.ask("GET", "/webhooks/%2F%2Fevil.example%0d%0aset-cookie:x")
      assert.strictEqual(strange.location, "/console/webhooks/%2F%2Fevil.example%0D%0Aset-cookie%3Ax")
    }))

  it.effect("the first page says what this is, and leads to the console and to the reference", () =>
    Effect.gen(function* () {
      const one = yield* browser
      const page = yield* one.ask("GET", "/")
      assert.strictEqual(page.status, 200)
      assert.include(page.headers.get("content-security-policy")!, "default-src 'none'")
      assert.notInclude(page.text, "<script")
      const links = [...page.text.matchAll(/href="([^"]+)"/g)].map(([, href]) => href!)
      assert.deepStrictEqual(links, ["/page.css", "/console/", "/v1/docs", "/v1/openapi.json"])
      for (const href of links) assert.strictEqual((yield* one.ask("GET", href)).status, 200, href)
    }))
})

layer(staged({ CONSOLE: "off", DOMAIN_TRANSFERS_ENABLED: "false" }), { excludeTestServices: true })(
  "links of an installation without a console",
  (it) => {
    it.effect("say where the same can be asked, and nothing leads to the console", () =>
      Effect.gen(function* () {
        const one = yield* browser
        const ids = params()
        for (const [name, pattern] of Object.entries(appPaths)) {
          const { status, text } = yield* one.ask("GET", filledPath(pattern, ids))
          const isTransfer = /transfer/i.test(name)
          assert.strictEqual(status, isTransfer ? 404 : 200, name)
          if (isTransfer) continue
          assert.isTrue(isPage(text), name)
          assert.notInclude(text, "/console/")
        }
        const { text } = yield* one.ask("GET", `/webhooks/${ids.webhook_id}`)
        assert.include(text, `GET /v1/webhooks/${ids.webhook_id}`)
        assert.notInclude((yield* one.ask("GET", "/")).text, "/console/")
      }))
  },
)

describe("the list of links", () => {
  it("has every link that a service writes: each is made by appPath", () => {
    const folder = fileURLToPath(new URL("../../../../services", import.meta.url))
    const files = (readdirSync(folder, { recursive: true }) as ReadonlyArray<string>).filter((name) =>
      name.endsWith(".ts")
    )
    const literal = /\bhref: *(?:new URL\()?["'`][^"'`]*\//
    const found = files.filter((name) => literal.test(readFileSync(join(folder, name), "utf8")))
    assert.deepStrictEqual(found, [])
    const made = files.flatMap((name) =>
      [...readFileSync(join(folder, name), "utf8").matchAll(/appPath\(([^{]*)/g)].flatMap(([, names]) =>
        [...names!.matchAll(/"(\w+)"/g)].map(([, one]) => one!).filter((one) => one in appPaths)
      )
    )
    assert.deepStrictEqual([...new Set(made)].sort(), Object.keys(appPaths).sort())
  })
})
