/**
 * The console followed by its links alone, in real Chromium: from the first pages of the demo's people every screen is
 * reached, and no link leads nowhere. Each screen is sound, can be touched on a phone, is read at 200 and 400 % without
 * scrolling to the side, tells states apart in forced colours, and moves nothing.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { readFileSync } from "node:fs"
import type { Page } from "puppeteer-core"
import { demoIds } from "../../../../src/embedded/DemoDirectory.ts"
import { demoIdentityIds } from "../../../../src/embedded/DemoIdentity.ts"
import { desktop } from "../../../support/Browser.ts"
import { type AtConsole, Chromium, follow, inConsole, looks, quiet, sound } from "./ConsoleBrowser.ts"
import { ownPage, signedIn, staged } from "./ConsoleStage.ts"

/** The paths of all screens, with their parameters. */
const screens = [
  ...readFileSync(new URL("../../../../console/Screens.tsx", import.meta.url), "utf8").matchAll(/path: "([^"]*)"/g),
].map(([, path]) => path!)

const screenOf = (path: string) =>
  screens.find((one) => new RegExp(`^${one.replaceAll(/:[a-z_]+/g, "[^/]+")}$`).test(path))

/** Something of each kind that has a page. */
const things = Effect.gen(function* () {
  const alice = yield* signedIn("Alice")
  const made = yield* alice.ask("POST", "/v1/webhooks/", {
    json: { url: "https://hooks.example.com/", events: ["email.bounced"] },
    headers: ownPage,
  })
  assert.strictEqual(made.status, 201, made.text)
  yield* alice.ask("POST", `/v1/webhooks/${made.body.id}/test`, { headers: ownPage })
  const oz = yield* signedIn("Oz")
  const access = { institution_id: demoIdentityIds.fern, project_id: demoIdentityIds.fernPortal }
  const asked = yield* oz.ask("POST", "/v1/me/access-requests", {
    json: { ...access, reason: "helps with the portal" },
    headers: { ...ownPage, "idempotency-key": "once" },
  })
  assert.strictEqual(asked.status, 201, asked.text)
  const sam = yield* signedIn("Sam")
  const reviews = `/v1/institutions/${demoIdentityIds.fern}/access-grant-reviews`
  const { body: { candidates: [candidate] } } = yield* sam.ask("GET", reviews)
  const { access_id, access_version, grant_event_id } = candidate
  const proposed = yield* sam.ask("POST", reviews, {
    json: { access_id, access_version, grant_event_id, reason: "still works here" },
    headers: { ...ownPage, "idempotency-key": "review" },
  })
  assert.strictEqual(proposed.status, 201, proposed.text)
  const ada = yield* signedIn("Ada")
  const opened = yield* ada.ask("POST", `/v1/institutions/${demoIdentityIds.fern}/campaigns`, {
    json: { name: "Spring", deadline: new Date(Date.now() + 86_400_000).toISOString(), reason: "as every spring" },
    headers: ownPage,
  })
  assert.strictEqual(opened.status, 201, opened.text)
  const json = { target_email: "bob@birch.example" }
  const offer = yield* alice.ask("POST", `/v1/domains/${demoIds.alderDomain}/transfer`, { json, headers: ownPage })
  assert.strictEqual(offer.status, 200, offer.text)
})

/** Buttons, fields and links of menus that are less than 44 pixels high. */
const low = () =>
  [...document.querySelectorAll<HTMLElement>("button, select, summary, textarea, input, .menu a, a.button")]
    .filter((one) => !one.matches("[type=checkbox], [type=radio], [type=hidden]"))
    .filter((one) => one.checkVisibility({ visibilityProperty: true }))
    .map((one) => [one, one.getBoundingClientRect().height] as const)
    .filter(([, height]) => height > 0 && height < 44)
    .map(([one, height]) => `${one.tagName} ${one.textContent?.trim()} ${Math.round(height)}`)

const wider = () => document.documentElement.scrollWidth - document.documentElement.clientWidth

/** Badges that have no border: their colours are the system's. */
const borderless = () =>
  [...document.querySelectorAll<HTMLElement>(".badge")]
    .filter((one) => getComputedStyle(one).borderTopStyle === "none" || one.innerText.trim() === "")
    .map((one) => one.outerHTML)

const layout = (at: AtConsole, path: string) =>
  Effect.promise(async () => {
    const { cdp, page } = at
    await page.setViewport(looks.phone.viewport)
    assert.deepStrictEqual(await page.evaluate(low), [], `${path}: too low to be touched`)
    for (const percent of [200, 400]) {
      await page.setViewport({ width: desktop.width * 100 / percent, height: desktop.height * 100 / percent })
      assert.isAtMost(await page.evaluate(wider), 0, `${path} scrolls to the side at ${percent} %`)
    }
    await page.setViewport(desktop)
    await cdp.send("Emulation.setEmulatedMedia", { features: [{ name: "forced-colors", value: "active" }] })
    assert.deepStrictEqual(await page.evaluate(borderless), [], `${path}: a state is told by its colour alone`)
    await cdp.send("Emulation.setEmulatedMedia", { features: [] })
    assert.strictEqual(await page.evaluate(() => document.getAnimations().length), 0, `${path} moves`)
  })

/** The server's answer to a path of the console that a browser asks for by its address. */
const byAddress = (page: Page, path: string) =>
  Effect.promise(() =>
    page.evaluate(async (path) => {
      const answer = await fetch(path, { headers: { accept: "text/html" } })
      return [answer.status, await answer.text()] as const
    }, path)
  )

/** Follows links from a page on, one for each screen. Returns the screens. */
const followed = Effect.fnUntraced(function* (at: AtConsole) {
  const { page } = at
  const calm = quiet(page)
  const reached = new Map<string, string>()
  const queue = [new URL(page.url()).pathname]
  const shell = yield* byAddress(page, queue[0]!)
  assert.strictEqual(shell[0], 200)
  for (let path = queue.shift(); path !== undefined; path = queue.shift()) {
    const screen = screenOf(path)
    assert.isDefined(screen, `${path} is no screen`)
    if (reached.has(screen!)) continue
    reached.set(screen!, path)
    assert.deepStrictEqual(yield* byAddress(page, path), shell, path)
    if (path !== new URL(page.url()).pathname) {
      yield* Effect.promise(() => page.$eval("h1", (one) => one.setAttribute("class", "left")))
      yield* follow(page, path)
    }
    const links = yield* Effect.promise(async () => {
      await page.waitForSelector("h1:not(.left)")
      await calm()
      const heading = await page.$eval("h1", ({ textContent }) => textContent)
      assert.notInclude(["There is no such page", "Sign in"], heading, path)
      return await page.$$eval("a[href]", (all) =>
        all.map((one) => new URL((one as HTMLAnchorElement).href)).map(
          ({ origin, pathname }) => [origin, pathname] as const,
        ))
    })
    yield* sound(at, path)
    yield* layout(at, path)
    for (const [origin, pathname] of links) {
      if (origin !== at.origin || !pathname.startsWith("/console/")) continue
      if (!/^\/console\/(sign-in|sign-out)?$/.test(pathname)) queue.push(pathname)
    }
  }
  return [...reached.keys()]
})

const stage = Layer.merge(staged(), Chromium.layer)

layer(stage, { excludeTestServices: true, timeout: "8 minutes" })("the console's links", (it) => {
  it.effect("lead to every screen, and to nothing else", () =>
    Effect.gen(function* () {
      yield* things
      const reached = new Set<string>()
      for (
        const [who, home] of [
          ["Alice", "/console/overview"],
          ["Carol", "/console/move-domain"],
          ["Sam", "/console/decide"],
          ["Oz", "/console/operations/findings"],
        ] as const
      ) {
        const at = yield* inConsole(who, {}, home)
        for (const screen of yield* followed(at)) reached.add(screen)
      }
      assert.sameMembers([...reached], screens)
    }), 600_000)
})
