/** Real Chromium, driven over the DevTools protocol. A test that needs a browser gets one or fails. */
import { Effect, Schema } from "effect"
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Browser, CDPSession, Page, Viewport } from "puppeteer-core"
import { inject } from "vitest"
import { startOf } from "../../src/embedded/ProcessTable.ts"
import { startChromium } from "./ChromiumBinary.ts"

export class BrowserError extends Schema.TaggedError<BrowserError>()("BrowserError", { message: Schema.String }) {}

/** On a busy machine a browser takes long to start, and to show a page. */
const patienceMillis = 120_000

/** Launches a browser that the run's teardown ends, and whose data it deletes with the run's folder. */
const launch = async (): Promise<Browser> => {
  const run = inject("runFolder")
  const profile = mkdtempSync(join(run, "browser-"))
  const browser = await startChromium(profile, patienceMillis)
  const pid = browser.process()?.pid
  if (pid === undefined) throw new Error("it has no process")
  const processes = join(run, "processes")
  mkdirSync(processes, { recursive: true })
  writeFileSync(join(processes, String(pid)), (await Effect.runPromise(startOf(pid))) ?? "")
  return browser
}

let launched: Promise<Browser> | null = null

/**
 * The browser of this process, in which each visitor has a context of its own: a launch for every test file took a
 * second or two of a core.
 */
export const browser = Effect.tryPromise({
  try: async () => {
    if (launched === null || !(await launched).connected) launched = launch()
    return await launched
  },
  catch: (cause) => {
    launched = null
    return new BrowserError({ message: `no browser: ${cause}` })
  },
})

export const phone: Viewport = { width: 360, height: 740, isMobile: true, hasTouch: true, deviceScaleFactor: 2 }
export const desktop: Viewport = { width: 1280, height: 800 }

export interface Visitor {
  readonly page: Page
  /** The page's DevTools session: emulation, virtual authenticators, and whatever puppeteer has no method for. */
  readonly cdp: CDPSession
  /** The browser's complaints so far: errors, refused resources, policy violations. Not a page's own 4xx. */
  readonly complaints: ReadonlyArray<string>
}

export interface VisitorOptions {
  readonly viewport?: Viewport
  /** Whether pages may run scripts; true by default. */
  readonly scripts?: boolean
}

/** A visitor with cookies and a tab of its own; closed with the scope. */
export const visitor = Effect.fnUntraced(
  function* (browser: Browser, { scripts = true, viewport = desktop }: VisitorOptions = {}) {
    const context = yield* Effect.acquireRelease(
      Effect.promise(() => browser.createBrowserContext()),
      (context) => Effect.promise(() => context.close()),
    )
    return yield* Effect.promise(async (): Promise<Visitor> => {
      const page = await context.newPage()
      page.setDefaultTimeout(patienceMillis)
      await page.setViewport(viewport)
      await page.setJavaScriptEnabled(scripts)
      const complaints: Array<string> = []
      const documents = new Set<string>()
      page.on("request", (request) => request.isNavigationRequest() && documents.add(request.url()))
      page.on("pageerror", (error) => complaints.push(`page error: ${error}`))
      page.on("requestfailed", (request) => {
        const { errorText } = request.failure() ?? {}
        // A page ends the requests of what it leaves, which is no fault.
        if (errorText !== "net::ERR_ABORTED") complaints.push(`failed: ${request.url()} ${errorText}`)
      })
      const cdp = await page.createCDPSession()
      cdp.on("Log.entryAdded", ({ entry: { level, source, text, url } }) => {
        const ownAnswer = source === "network" && url !== undefined && documents.has(url)
        if (!ownAnswer && (level === "error" || level === "warning")) complaints.push(`${source}: ${text} ${url ?? ""}`)
      })
      cdp.on("Runtime.consoleAPICalled", ({ args, type }) => {
        if (type === "error" || type === "warning") complaints.push(`console: ${args[0]?.value}`)
      })
      await cdp.send("Log.enable")
      await cdp.send("Runtime.enable")
      return { page, cdp, complaints }
    })
  },
)
