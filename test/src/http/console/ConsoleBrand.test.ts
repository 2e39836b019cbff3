/** The installation's name, colour and logo: on pages without scripts, at the console, and on their own paths. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { shadesOf } from "../../../../services/platform/Brand.ts"
import { Chromium, everyLook, heading, inConsole } from "./ConsoleBrowser.ts"
import { browser, staged } from "./ConsoleStage.ts"

const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 10"><script>alert(1)</script><circle r="5"/></svg>`
const logo = join(mkdtempSync(join(tmpdir(), "brand-")), "logo.svg")
writeFileSync(logo, svg)

const name = "Acme <Mail> $& Co"
const shades = shadesOf("#ffcc00")

layer(
  Layer.merge(staged({ BRAND_NAME: name, BRAND_COLOR: "#FFCC00", BRAND_LOGO: logo }), Chromium.layer),
  { excludeTestServices: true, timeout: "2 minutes" },
)("a branded installation", (it) => {
  it.effect("shows its name and logo on the pages without scripts", () =>
    Effect.gen(function* () {
      const one = yield* browser
      for (const path of ["/", "/enrollments/" + "A".repeat(43), "/console/callback"]) {
        const { text } = yield* one.ask("GET", path)
        assert.include(text, "Acme &lt;Mail&gt; $&amp; Co", path)
        assert.include(text, `<img src="/brand/logo"`, path)
        assert.include(text, `href="/brand.css"`, path)
        assert.notInclude(text, "<!--brand", path)
      }
    }))

  it.effect("serves its sheet and its logo, which opened alone runs nothing", () =>
    Effect.gen(function* () {
      const one = yield* browser
      assert.include((yield* one.ask("GET", "/brand.css")).text, `light-dark(${shades.light}, ${shades.dark})`)
      const { headers, text } = yield* one.ask("GET", "/brand/logo")
      assert.strictEqual(text, svg)
      assert.strictEqual(headers.get("content-type"), "image/svg+xml")
      assert.include(headers.get("content-security-policy")!, "default-src 'none'")
      assert.include(headers.get("content-security-policy")!, "sandbox")
    }))

  it.effect("shows them at the console, in its colour, in every look", () =>
    Effect.gen(function* () {
      const at = yield* inConsole("Alice", {}, "/console/webhooks")
      yield* heading(at.page, "Webhooks")
      // The title is set after the page is painted, the logo loads after that.
      yield* Effect.promise(() =>
        at.page.waitForFunction(
          () => document.title !== "Console" && document.querySelector<HTMLImageElement>(".brand img")?.complete,
        )
      )
      const shown = yield* Effect.promise(() =>
        at.page.evaluate(() => ({
          name: document.querySelector(".brand")?.textContent,
          title: document.title,
          loaded: (document.querySelector(".brand img") as { naturalWidth?: number } | null)?.naturalWidth ?? 0,
          link: getComputedStyle(document.documentElement).getPropertyValue("--link"),
        }))
      )
      assert.strictEqual(shown.name, name)
      assert.strictEqual(shown.title, `Webhooks – ${name}`)
      assert.isAbove(shown.loaded, 0)
      assert.include(shown.link, shades.light)
      yield* everyLook(at, "brand")
    }))
})

layer(staged(), { excludeTestServices: true, timeout: "2 minutes" })("an installation without a brand", (it) => {
  it.effect("shows none on its pages, and has no logo", () =>
    Effect.gen(function* () {
      const one = yield* browser
      const { text } = yield* one.ask("GET", "/enrollments/" + "A".repeat(43))
      assert.notInclude(text, "brand")
      assert.strictEqual((yield* one.ask("GET", "/brand/logo")).status, 404)
      assert.deepStrictEqual((yield* one.visitor).brand, { name: "Bailiwick", logo_url: null })
    }))
})
