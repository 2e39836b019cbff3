/**
 * People at the console in real Chromium: signed in through the demo's issuer as its people are, with every complaint of the
 * browser, and every address that it asked for, recorded.
 */
import { AxePuppeteer } from "@axe-core/puppeteer"
import { assert } from "@effect/vitest"
import { Context, Effect, Layer, Redacted } from "effect"
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, watch } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import process from "node:process"
import type { Browser as Chrome, ElementHandle, HTTPRequest, Page, Protocol } from "puppeteer-core"
import { DevKey } from "../../../../src/http/dev/DevKey.ts"
import { Server } from "../../../../src/http/Server.ts"
import { browser, desktop, phone, type Visitor, visitor, type VisitorOptions } from "../../../support/Browser.ts"
import { aal2 } from "./ConsoleStage.ts"

/** One browser for a test file. */
export class Chromium extends Context.Service<Chromium, Chrome>()("bailiwick/test/http/console/Chromium") {
  static readonly layer = Layer.effect(Chromium, browser)
}

export interface AtConsoleOptions extends VisitorOptions {
  /** The origin by which the browser reaches the console; the listener's own by default. */
  readonly origin?: string
}

export interface AtConsole extends Visitor {
  readonly origin: string
  /** Every address that the browser asked for. */
  readonly asked: ReadonlyArray<string>
  /** Goes to a path of the console by loading it, and waits for its heading. */
  readonly open: (path: string, heading?: string) => Effect.Effect<void>
}

/** Waits for the page's heading: `<h1>` with this text. */
export const heading = (page: Page, text: string) =>
  Effect.promise(() =>
    page.waitForFunction((text: string) => document.querySelector("h1")?.textContent?.trim() === text, {}, text)
  )

/**
 * Goes to a path of the console as its links do: within the page, which is not loaded anew. A screen asks for what it shows
 * after it is painted: afterwards its requests are under way, or those for its script.
 */
export const follow = (page: Page, path: string) =>
  Effect.promise(() =>
    page.evaluate(async (path) => {
      history.pushState(null, "", path)
      dispatchEvent(new PopStateEvent("popstate"))
      for (let frames = 0; frames < 2; frames++) {
        await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)))
      }
    }, path)
  )

/** How long a click waits for its element before the element is looked for again: an answer may have replaced it. */
const settling = 5_000

/** Hears whether a click comes to the element. */
const heardBy = (element: ElementHandle<Element>) =>
  element.evaluateHandle((one) => {
    const heard = { click: false }
    one.addEventListener("click", () => heard.click = true, { once: true, capture: true })
    return heard
  })

/** Taps the element with a finger, once two frames show it in the same place. */
const tap = async (element: ElementHandle<Element>) => {
  await element.evaluate(async (one) => {
    one.scrollIntoView({ block: "center" })
    const place = () => {
      const { left, top } = one.getBoundingClientRect()
      return `${left} ${top}`
    }
    for (let [before, now] = ["", place()]; before !== now; before = now, now = place()) {
      await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))
    }
  })
  await element.tap()
}

/**
 * Clicks what `find` finds, once it stays in its place, and returns it; on a phone it is tapped. A click that gave up has
 * clicked nothing; one that an answer has moved the element away from, after it was seen to stay, has clicked something
 * else.
 */
const clicked = async (page: Page, find: () => Promise<ElementHandle<Element>>, count = 1) => {
  const touches = page.viewport()?.hasTouch === true
  for (let tries = 1;; tries++) {
    const found = await find()
    try {
      const heard = await heardBy(found)
      if (touches) {
        await tap(found)
        // The browser makes a click of a tap once it is sure that it is no other gesture.
        await page.waitForFunction(({ click }) => click, { timeout: settling }, heard).catch((error: Error) => {
          // Of a page that the tap has left nothing more is told.
          if (error.name === "TimeoutError") throw error
        })
        return found
      }
      await found.asLocator().setTimeout(settling).click({ count })
      // Of a page that the click has left nothing more is told.
      if (await heard.evaluate(({ click }) => click).catch(() => true)) return found
    } catch (error) {
      if (tries === 24 || (error as Error).name !== "TimeoutError") throw error
    }
    if (tries === 24) throw new Error("no click came to the element")
  }
}

/**
 * Presses the button or link with these words, in the open dialog where there is one, once it stays in its place: what an
 * answer adds above it moves it away from under the pointer.
 */
export const press = (page: Page, words: string, of = "button, a, summary, label") =>
  Effect.promise(() =>
    clicked(page, async () => {
      const handle = await page.waitForFunction(
        (words: string, of: string) => {
          const root = document.querySelector("dialog[open]") ?? document
          return [...root.querySelectorAll<HTMLElement>(of)].find((one) =>
            one.textContent?.trim() === words && !one.matches(":disabled")
          )
        },
        {},
        words,
        of,
      )
      return handle.asElement() as ElementHandle<Element>
    })
  )

/** Clicks the one of the elements of a selector that has this index, as `press` does. */
export const clickOn = (page: Page, selector: string, index = 0) =>
  Effect.promise(() =>
    clicked(page, async () => {
      const handle = await page.waitForFunction(
        (selector: string, index: number) => document.querySelectorAll(selector)[index],
        {},
        selector,
        index,
      )
      return handle.asElement() as ElementHandle<Element>
    })
  )

/**
 * Follows a page's requests from now on; the result waits until none has been under way for 150 ms. Streams of events do
 * not count: puppeteer's own `waitForNetworkIdle` counts each, also those of pages that were left.
 */
export const quiet = (page: Page) => {
  const open = new Set<HTTPRequest>()
  page.on("request", (one) => new URL(one.url()).pathname.endsWith("/stream") || open.add(one))
  page.on("requestfinished", (one) => open.delete(one))
  page.on("requestfailed", (one) => open.delete(one))
  // Of a request of a page that is left nothing more is told.
  page.on("framenavigated", (frame) => frame === page.mainFrame() && open.clear())
  return async () => {
    const end = performance.now() + 60_000
    for (let looks = 0; looks < 3;) {
      if (performance.now() > end) throw new Error(`still under way: ${[...open].map((one) => one.url()).join()}`)
      await new Promise((resolve) => setTimeout(resolve, 50))
      looks = open.size === 0 ? looks + 1 : 0
    }
  }
}

/** Waits for a text anywhere on the page. */
export const text = (page: Page, words: string) =>
  Effect.promise(() => page.waitForFunction((words: string) => document.body.innerText.includes(words), {}, words))

/** Types into the field with this label, in the open dialog where there is one, once it stays in its place. */
export const fill = (page: Page, label: string, value: string) =>
  Effect.promise(async () => {
    const field = await clicked(page, async () => {
      const handle = await page.waitForFunction(
        (label: string) => {
          const root = document.querySelector("dialog[open]") ?? document
          const found = [...root.querySelectorAll("label")].find((one) => one.textContent?.trim() === label)
          return found?.control ?? undefined
        },
        {},
        label,
      )
      return handle.asElement() as ElementHandle<Element>
    }, 3)
    // Three clicks have chosen what stands in it; one tap has not.
    if (page.viewport()?.hasTouch === true) await field.evaluate((one) => (one as HTMLInputElement).select())
    await field.type(value)
  })

/** Sets the field of a time with this label, `2026-12-24T18:00`; the keys that its picker takes differ by language. */
export const fillTime = (page: Page, label: string, value: string) =>
  Effect.promise(async () => {
    const handle = await page.waitForFunction(
      (label: string) => {
        const root = document.querySelector("dialog[open]") ?? document
        const found = [...root.querySelectorAll("label")].find((one) => one.textContent?.trim() === label)
        return found?.control ?? undefined
      },
      {},
      label,
    )
    await (handle.asElement() as ElementHandle<HTMLInputElement>).evaluate((field, value) => {
      field.value = value
      field.dispatchEvent(new Event("input", { bubbles: true }))
    }, value)
  })

/**
 * Cuts the answer of the page's next POST to a path that ends so: the server has done what was asked, and the page is not
 * told.
 */
export const losingAnswer = ({ cdp }: Visitor, path: string) =>
  Effect.promise(async () => {
    await cdp.send("Fetch.enable", { patterns: [{ urlPattern: `*${path}`, requestStage: "Response" }] })
    const cut = async ({ request: { method }, requestId }: Protocol.Fetch.RequestPausedEvent) => {
      if (method !== "POST") return void await cdp.send("Fetch.continueRequest", { requestId })
      cdp.off("Fetch.requestPaused", cut)
      await cdp.send("Fetch.failRequest", { requestId, errorReason: "ConnectionReset" })
      await cdp.send("Fetch.disable")
    }
    cdp.on("Fetch.requestPaused", cut)
  })

/** Chooses the first option that begins with these words, in the list with this label. */
export const choose = (page: Page, label: string, words: string) =>
  Effect.promise(async () => {
    const handle = await page.waitForFunction(
      (label: string, words: string) => {
        const root = document.querySelector("dialog[open]") ?? document
        const found = [...root.querySelectorAll("label")].find((one) => one.textContent?.trim() === label)
        const options = [...(found?.control as HTMLSelectElement | undefined)?.options ?? []]
        return options.find(({ text }) => text.startsWith(words))
      },
      {},
      label,
      words,
    )
    const option = handle.asElement() as unknown as ElementHandle<HTMLOptionElement>
    const value = await option.evaluate((one) => one.value)
    const list = await option.evaluateHandle((one) => one.closest("select")!)
    await list.select(value)
  })

/** A browser at the console, not signed in yet. */
export const atConsole = Effect.fnUntraced(function* (options: AtConsoleOptions = {}) {
  const origin = options.origin ?? (yield* Server).url
  const { cookie, key } = yield* DevKey
  const visiting = yield* visitor(yield* Chromium, options)
  const { page } = visiting
  const asked: Array<string> = []
  // Chromium draws the picker of a date field from a data: address of its own.
  page.on("request", (request) => request.url().startsWith("data:") || asked.push(request.url()))
  yield* Effect.promise(() =>
    page.browserContext().setCookie({
      name: cookie.name,
      value: Redacted.value(key),
      domain: new URL(origin).hostname,
      path: "/dev",
    })
  )
  const open = (path: string, title?: string) =>
    Effect.promise(() => page.goto(new URL(path, origin).href, { waitUntil: "load" })).pipe(
      Effect.andThen(title === undefined ? Effect.void : heading(page, title)),
      Effect.asVoid,
    )
  return { ...visiting, origin, asked, open } satisfies AtConsole
})

/** A phone in a hand: what is pressed is tapped. */
export const inHand = { viewport: { ...phone, width: 390, height: 844 } } as const

/** Buttons and links of a phone's page that a thumb misses: lower than 44 px. Links within a text count as text. */
export const thin = (page: Page) =>
  Effect.promise(() =>
    page.$$eval(
      "main :is(button, a.button, select), dialog[open] :is(button, select)",
      (all) =>
        all.filter((one) => one.checkVisibility() && one.getBoundingClientRect().height < 44)
          .map((one) => one.textContent?.trim()),
    )
  )

/** Gives the text of each file that the page's browser is made to keep from now on. */
export const downloads = Effect.fnUntraced(function* ({ cdp }: AtConsole) {
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "downloads-"))),
    (made) => Effect.sync(() => rmSync(made, { recursive: true })),
  )
  yield* Effect.promise(() => cdp.send("Page.setDownloadBehavior", { behavior: "allow", downloadPath: folder }))
  /** Runs what makes the browser keep the file, and reads it. The browser writes another name first. */
  return <E, R>(file: string, make: Effect.Effect<unknown, E, R>) =>
    Effect.gen(function* () {
      const done = new Promise<void>((resolve) => {
        const files = watch(folder, (_, name) => {
          if (name !== file || !existsSync(join(folder, name))) return
          files.close()
          resolve()
        })
      })
      yield* make
      yield* Effect.promise(() => done)
      return readFileSync(join(folder, file), "utf8")
    })
})

/** Chooses a person on the demo issuer's page. */
export const chooseAtIssuer = Effect.fnUntraced(function* (page: Page, who: string, level?: string) {
  yield* Effect.promise(() => page.waitForSelector('button[name="subject"]'))
  if (level !== undefined) yield* Effect.promise(() => page.click(`input[value="${level}"]`))
  yield* Effect.promise(async () => {
    const buttons = await page.$$('button[name="subject"]')
    for (const button of buttons) {
      if ((await button.evaluate((one) => one.textContent ?? "")).startsWith(`${who},`)) {
        await Promise.all([page.waitForNavigation({ waitUntil: "load" }), button.click()])
        return
      }
    }
    throw new Error(`${who} is not on the issuer's page`)
  })
})

/** A browser in which a person of the demo is signed in, by the pages alone. */
export const inConsole = Effect.fnUntraced(function* (who: string, options: AtConsoleOptions = {}, path = "/console/") {
  const at = yield* atConsole(options)
  yield* at.open(path, "Sign in")
  yield* press(at.page, "Sign in with the demo")
  yield* chooseAtIssuer(at.page, who)
  return at
})

/** A browser at a page of the console, signed in with a second factor, as decisions ask for. */
export const deciderAt = Effect.fnUntraced(function* (
  who: string,
  path: string,
  title: string,
  options: AtConsoleOptions = {},
) {
  const at = yield* atConsole(options)
  yield* at.open(path, "Sign in")
  yield* press(at.page, "Sign in with the demo")
  yield* chooseAtIssuer(at.page, who, aal2)
  yield* heading(at.page, title)
  return at
})

const { resolve } = createRequire(createRequire(import.meta.url).resolve("@axe-core/puppeteer"))
const axeSource = readFileSync(resolve("axe-core/axe.min.js"), "utf8")

/** The rules of axe that see colours: what one page shows in the dark differs in nothing else from what it shows by day. */
const ofColours = ["color-contrast", "link-in-text-block"]

/**
 * The findings of axe. A page gets its source, of 600 KB, once; in legacy mode it opens no window of its own, which a page
 * without foreign frames does not need. Of a rule that the page keeps it describes one element: all of them took as long
 * as finding them.
 */
const axe = async (page: Page, rules: ReadonlyArray<string> | null) => {
  const there = await page.evaluate(() => "axe" in globalThis)
  const runner = new AxePuppeteer(page, there ? ";" : axeSource).setLegacyMode()
  const runOnly = rules === null ? {} : { runOnly: { type: "rule" as const, values: [...rules] } }
  return await runner.options({ resultTypes: ["violations"], ...runOnly }).analyze()
}

/**
 * No accessibility fault, no complaint of the browser, no request to anywhere else, no scrolling to the side. `rules`: those
 * of axe that are looked at; all by default.
 */
export const sound = Effect.fnUntraced(function* (
  { asked, complaints, origin, page }: AtConsole,
  screen: string,
  rules: ReadonlyArray<string> | null = null,
) {
  const { passes, violations } = yield* Effect.promise(() => axe(page, rules))
  assert.isAbove(passes.length, rules === null ? 8 : 0, screen)
  const faults = violations.map(({ help, id, nodes }) => `${id}: ${help}: ${nodes.map(({ html }) => html).join(" ")}`)
  // As text: of an array the message would say its length alone.
  assert.strictEqual(faults.join("\n"), "", screen)
  assert.strictEqual(complaints.join("\n"), "", screen)
  assert.strictEqual(asked.filter((one) => new URL(one).origin !== origin).join("\n"), "", screen)
  yield* upright(page, screen)
})

/** No scrolling to the side. */
const upright = Effect.fnUntraced(function* (page: Page, screen: string) {
  const wider = yield* Effect.promise(() =>
    page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
  )
  assert.isAtMost(wider, 0, `${screen} scrolls to the side`)
})

/** Widths between a phone's and a desktop's: a tablet's, and those on both sides of where the navigation folds. */
const between = [800, 960, 980]

/** Keeps a picture of the page where `SCREENSHOTS` names a folder. */
export const pictured = (page: Page, name: string) =>
  Effect.promise(async () => {
    const folder = process.env["SCREENSHOTS"]
    if (folder === undefined) return
    mkdirSync(folder, { recursive: true })
    await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true })
  })

/**
 * Each screen is looked at in these ways. The phone is its width alone: to become a phone in full, puppeteer loads the page
 * anew, which closes its dialogs, and would be looked at before it has read anything.
 */
export const looks = {
  desktop: { viewport: desktop, scheme: "light" },
  phone: { viewport: { ...phone, isMobile: false, hasTouch: false }, scheme: "light" },
  dark: { viewport: desktop, scheme: "dark" },
} as const

/** Looks at a screen on a desktop, on a phone and in the dark; between their widths it scrolls to no side either. */
export const everyLook = Effect.fnUntraced(function* (at: AtConsole, screen: string) {
  for (const [look, { scheme, viewport }] of Object.entries(looks)) {
    yield* Effect.promise(() => at.page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]))
    yield* Effect.promise(() => at.page.setViewport(viewport))
    yield* sound(at, `${screen}, ${look}`, scheme === "dark" ? ofColours : null)
    yield* pictured(at.page, `${screen}-${look}`)
  }
  for (const width of between) {
    yield* Effect.promise(() => at.page.setViewport({ width, height: 800 }))
    yield* upright(at.page, `${screen}, ${width} px wide`)
  }
  yield* Effect.promise(() => at.page.setViewport(desktop))
})
