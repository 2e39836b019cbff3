/** A browser at the console of a measured program, signed in as one of the demo's accounts, which times its pages. */
import { Effect } from "effect"
import { mkdtempSync } from "node:fs"
import { join } from "node:path"
import type { ElementHandle, Page } from "puppeteer-core"
import { startChromium } from "../../test/support/ChromiumBinary.ts"
import { BenchError } from "./Child.ts"

const patienceMillis = 60_000

const failed = (cause: unknown) => new BenchError({ message: `the browser: ${String(cause)}` })

const trying = <A>(run: () => Promise<A>) => Effect.tryPromise({ try: run, catch: failed })

/** Marks when the first row of a table was painted: the frame after it came into the document. */
const marking = () => {
  const seen = () => {
    if (document.querySelector("tbody th a") === null) return
    observer.disconnect()
    requestAnimationFrame(() => setTimeout(() => performance.mark("rows")))
  }
  const observer = new MutationObserver(seen)
  observer.observe(document, { childList: true, subtree: true })
}

const signIn = async (page: Page, demo: string, who: string) => {
  await page.goto(demo)
  const pressed = async (selector: string, words: string) => {
    const found = await page.waitForFunction(
      (selector: string, words: string) =>
        [...document.querySelectorAll<HTMLElement>(selector)].find((one) => one.textContent?.trim().startsWith(words)),
      {},
      selector,
      words,
    )
    await Promise.all([page.waitForNavigation(), (found.asElement() as ElementHandle<HTMLElement>).click()])
  }
  await pressed("a, button", "Sign in with the demo")
  await pressed('button[name="subject"]', `${who},`)
  await page.waitForSelector("nav")
}

/** Milliseconds from the navigation on, and bytes that came over the network. */
export interface Painted {
  /** The first text, which needs no answer of the API. */
  readonly first: number
  /** The first rows. */
  readonly rows: number
  /** The answer of the API that the rows come from, from its request to its last byte. */
  readonly answer: number
  readonly bytes: number
}

const loaded = async (page: Page, url: string, api: string): Promise<Painted> => {
  await page.goto(url)
  await page.waitForFunction(() => performance.getEntriesByName("rows").length > 0)
  const painted = await page.evaluate((api: string) => {
    const resources = performance.getEntriesByType("resource") as Array<PerformanceResourceTiming>
    const all = [...performance.getEntriesByType("navigation") as Array<PerformanceResourceTiming>, ...resources]
    return {
      first: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? NaN,
      rows: performance.getEntriesByName("rows")[0]!.startTime,
      answer: resources.find(({ name }) => new URL(name).pathname === api)?.duration ?? NaN,
      bytes: all.reduce((sum, { transferSize }) => sum + transferSize, 0),
    }
  }, api)
  return painted
}

/**
 * Opens the console by the demo's address, which has the dev key, and signs in as `who`. `open` loads a page whose
 * table is read from `api`, with an empty cache or with that of the visits before.
 */
export const consoleVisitor = Effect.fnUntraced(function* (home: string, demo: string, who: string) {
  const browser = yield* Effect.acquireRelease(
    trying(() => startChromium(mkdtempSync(join(home, "browser-")), patienceMillis)),
    (browser) => Effect.promise(() => browser.close()),
  )
  const page = yield* trying(async () => {
    const page = await browser.newPage()
    page.setDefaultTimeout(patienceMillis)
    await signIn(page, demo, who)
    await page.evaluateOnNewDocument(marking)
    return page
  })
  return {
    open: (path: string, api: string, cached: boolean) =>
      trying(async () => {
        await page.setCacheEnabled(cached)
        return await loaded(page, new URL(path, demo).href, api)
      }),
  }
})
