/** The console's shell in real Chromium, and how its files are served. */
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { brotliDecompressSync, gunzipSync } from "node:zlib"
import { Database } from "../../../../services/platform/database/Database.ts"
import { demoIdentityIds } from "../../../../src/embedded/DemoIdentity.ts"
import { Server } from "../../../../src/http/Server.ts"
import { consoleFiles, sourceHash } from "../../../../src/http/console/ConsoleBuild.ts"
import { atConsole, Chromium, everyLook, heading, inConsole, pictured, press, text } from "./ConsoleBrowser.ts"
import { staged } from "./ConsoleStage.ts"

/** What a first page loads: the script, what it imports at once, and the sheet. */
const atOnce = (page: string) => [...page.matchAll(/\/console\/assets\/([\w-]+\.(?:js|css))/g)].map(([, name]) => name!)

layer(Layer.merge(staged(), Chromium.layer), { excludeTestServices: true, timeout: "4 minutes" })(
  "the console",
  (it) => {
    it.effect("a visitor signs in and lands on the page that was asked for, or on their own first one", () =>
      Effect.gen(function* () {
        const at = yield* atConsole()
        yield* at.open("/console/", "Sign in")
        yield* everyLook(at, "sign-in")
        yield* press(at.page, "Sign in with the demo")
        yield* Effect.promise(() => at.page.waitForSelector('button[name="subject"]'))
        const asked = yield* inConsole("Sam", {}, "/console/welcome?x=1")
        yield* heading(asked.page, "Welcome, Sam")
        assert.strictEqual(new URL(asked.page.url()).search, "?x=1")
        yield* text(asked.page, "Fern (sponsor)")
        // Exact times say their zone: the visitor's own, or UTC.
        yield* Effect.promise(() => asked.page.emulateTimezone("Asia/Tokyo"))
        yield* Effect.promise(() => asked.page.reload())
        yield* text(asked.page, "GMT+9")
        yield* press(asked.page, "Sam")
        yield* press(asked.page, "Times in UTC")
        yield* Effect.promise(() => asked.page.waitForFunction(() => !document.body.innerText.includes("GMT+9")))
        yield* text(asked.page, "UTC")
        yield* everyLook(asked, "welcome")
      }))

    it.effect("signing out in one tab ends the other one", () =>
      Effect.gen(function* () {
        const at = yield* inConsole("Pat", {}, "/console/welcome")
        yield* heading(at.page, "Welcome, Pat")
        const other = yield* Effect.promise(() => at.page.browserContext().newPage())
        yield* Effect.promise(() => other.goto(`${at.origin}/console/welcome`))
        yield* heading(other, "Welcome, Pat")
        yield* Effect.promise(() => at.page.bringToFront())
        // The draft of a form whose step-up was given up.
        yield* Effect.promise(() =>
          at.page.evaluate(() => sessionStorage.setItem("draft someone /console/ form", "{}"))
        )
        yield* press(at.page, "Pat")
        yield* press(at.page, "Sign out")
        yield* heading(at.page, "Sign in")
        yield* heading(other, "Sign in")
        const stored = yield* Effect.promise(() =>
          at.page.evaluate(() => [localStorage.length, sessionStorage.length, document.cookie])
        )
        assert.deepStrictEqual(stored, [0, 0, ""])
      }))

    it.effect("a draft stays its person's after a sign-in that names no mail account", () =>
      Effect.gen(function* () {
        const { sql } = yield* Database
        const [alice] = yield* sql<{ id: string }>`select id::text from accounts where email like 'alice@%'`
        const { origin, page } = yield* inConsole("Pat", {}, "/console/welcome")
        yield* heading(page, "Welcome, Pat")
        const [own, other] = [demoIdentityIds.pat, demoIdentityIds.sam].map((id) => `draft ${id} /console/welcome form`)
        for (const account of [alice!.id, null]) {
          yield* sql`update console_sessions set account_id = ${account}::uuid where person_id = ${demoIdentityIds.pat}`
          const keep = (keys: ReadonlyArray<string>) => keys.forEach((key) => sessionStorage.setItem(key, "{}"))
          yield* Effect.promise(() => page.evaluate(keep, [own!, other!]))
          yield* Effect.promise(() => page.goto(`${origin}/console/welcome`))
          yield* Effect.promise(() => page.waitForFunction((key) => sessionStorage.getItem(key) === null, {}, other!))
          const [kept, visitor] = yield* Effect.promise(() =>
            page.evaluate(async (key) => {
              const answer = await fetch("/v1/console/session")
              return [sessionStorage.getItem(key), await answer.json()]
            }, own!)
          )
          assert.deepStrictEqual([kept, visitor.account?.id ?? null], ["{}", account])
        }
      }))

    it.effect("an unknown address says so, and the keyboard alone reaches the page", () =>
      Effect.gen(function* () {
        const at = yield* inConsole("Abe", {}, "/console/nothing/here")
        yield* heading(at.page, "There is no such page")
        yield* Effect.promise(() => at.page.reload())
        yield* heading(at.page, "There is no such page")
        yield* Effect.promise(() => at.page.keyboard.press("Tab"))
        const first = yield* Effect.promise(() => at.page.evaluate(() => document.activeElement?.textContent))
        assert.strictEqual(first, "Skip to the page")
        yield* Effect.promise(() => at.page.keyboard.press("Enter"))
        const focused = yield* Effect.promise(() => at.page.evaluate(() => document.activeElement?.id))
        assert.strictEqual(focused, "main")
        // A part of an address that is no escaped text: by loading it, and by going back to it.
        yield* at.open("/console/nothing/%zz", "There is no such page")
        yield* at.open("/console/institutions/%ff", "Institution")
        yield* text(at.page, "There is no such thing, or it is not yours.")
        yield* Effect.promise(() =>
          at.page.evaluate(() => {
            history.pushState(null, "", "/console/institutions/%zz")
            dispatchEvent(new PopStateEvent("popstate"))
          })
        )
        yield* heading(at.page, "There is no such page")
        yield* press(at.page, "To your first page")
        yield* heading(at.page, "To decide")
        const heard = yield* Effect.promise(() => at.page.evaluate(() => document.activeElement?.tagName))
        assert.strictEqual(heard, "H1")
        // The browser reports the answer to the id that is none.
        assert.deepStrictEqual(at.complaints.filter((one) => !one.includes("status of 404")), [])
      }))

    it.effect("a browser without scripts is told what the console needs, on a page of its own looks", () =>
      Effect.gen(function* () {
        const { open, page } = yield* atConsole()
        yield* Effect.promise(() => page.setJavaScriptEnabled(false))
        yield* open("/console/webhooks")
        const shown = yield* Effect.promise(() => page.$eval("main h1", (one) => one.textContent))
        assert.strictEqual(shown, "The console needs JavaScript")
        assert.strictEqual(
          yield* Effect.promise(() => page.$eval("main a", (one) => one.getAttribute("href"))),
          "/v1/docs",
        )
        yield* pictured(page, "no-scripts")
      }))

    it.effect("the shell has a policy without a hole, and a 304 for a browser that has it", () =>
      Effect.gen(function* () {
        const { url } = yield* Server
        const ask = (path: string, headers: Record<string, string> = {}) =>
          Effect.promise(() => fetch(new URL(path, url), { headers }))
        for (const path of ["/console", "/console/", "/console/webhooks/some-id", "/console/assets"]) {
          const shell = yield* ask(path)
          if (path === "/console/assets") {
            assert.strictEqual(shell.status, 404)
            continue
          }
          assert.strictEqual(shell.status, 200, path)
          const policy = shell.headers.get("content-security-policy")!
          for (const part of ["default-src 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'"]) {
            assert.include(policy, part)
          }
          assert.notMatch(policy, /unsafe|data:|blob:|https?:|\*/)
          assert.strictEqual(shell.headers.get("cross-origin-opener-policy"), "same-origin")
          const again = yield* ask(path, { "if-none-match": shell.headers.get("etag")! })
          assert.strictEqual(again.status, 304)
        }
      }))

    it.effect("its files are compressed, and kept for good under a name with their hash", () =>
      Effect.gen(function* () {
        const { url } = yield* Server
        const page = yield* Effect.promise(async () => await (await fetch(new URL("/console/", url))).text())
        const [sheet, script] = atOnce(page)
        const files = yield* Effect.promise(async () => await consoleFiles(await sourceHash()))
        for (const name of [sheet!, script!]) {
          const raw = Buffer.from(files.get(name)!.raw)
          const answer = yield* Effect.promise(() => fetch(new URL(`/console/assets/${name}`, url)))
          assert.strictEqual(answer.headers.get("cache-control"), "public, max-age=31536000, immutable")
          assert.match(name, /-[A-Z0-9]{8}\.(js|css)$/)
          assert.isTrue(raw.equals(Buffer.from(yield* Effect.promise(() => answer.arrayBuffer()))))
          assert.isTrue(raw.equals(gunzipSync(files.get(name)!.gzip)))
          assert.isTrue(raw.equals(brotliDecompressSync(files.get(name)!.br)))
        }
        const missing = yield* Effect.promise(() => fetch(new URL("/console/assets/index.html", url)))
        assert.strictEqual(missing.status, 404)
      }))
  },
)

describe("the console's files", () => {
  it("a first page loads at most 45 kB, and no screen more than 25 kB beside it", async () => {
    const files = await consoleFiles(await sourceHash())
    const page = new TextDecoder().decode(files.get("index.html")!.raw)
    const base = atOnce(page)
    const sizeOf = (name: string) => files.get(name)!.gzip.length
    assert.isAtMost(base.reduce((sum, name) => sum + sizeOf(name), 0), 45_000)
    for (const name of files.keys()) if (!base.includes(name)) assert.isAtMost(sizeOf(name), 25_000, name)
    // The browser's part of WebAuthn is in the file of the account's screen alone.
    const withPasskeys = [...files].filter(([, { raw }]) => new TextDecoder().decode(raw).includes("attestationObject"))
    assert.deepStrictEqual(withPasskeys.map(([name]) => name.replace(/-[A-Z0-9]{8}/, "")), ["Account.js"])
  })

  it("nothing of them knows of Effect or of another origin", async () => {
    const files = await consoleFiles(await sourceHash())
    const texts = [...files.values()].map(({ raw }) => new TextDecoder().decode(raw))
    const addresses = texts.flatMap((one) => one.match(/https?:\/\/[\w.-]+/g) ?? [])
    // Preact names the namespaces of markup, and a warning of @simplewebauthn/browser its page.
    const named = ["http://www.w3.org", "https://simplewebauthn.dev"]
    assert.deepStrictEqual([...new Set(addresses)].filter((one) => !named.includes(one)), [])
    assert.isFalse(texts.some((one) => /effect\/|Schema\.Struct/.test(one)))
  })
})
