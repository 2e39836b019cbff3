/**
 * Real Chromium, driven over the DevTools protocol: the system's own, or else the one in the package
 * @sparticuz/chromium, unpacked once beside the packages with the few libraries and the font that a bare system lacks.
 * A test that needs a browser gets one or fails.
 */
import { Effect, Schema } from "effect"
import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs"
import { delimiter, join } from "node:path"
import process from "node:process"
import { brotliDecompressSync } from "node:zlib"
import puppeteer, { type Browser, type CDPSession, type Page, type Viewport } from "puppeteer-core"
import { inject } from "vitest"
import { startOf } from "../../src/embedded/ProcessTable.ts"
import { root } from "./Processes.ts"

export class BrowserError extends Schema.TaggedError<BrowserError>()("BrowserError", { message: Schema.String }) {}

interface Binary {
  readonly file: string
  readonly env: Readonly<Record<string, string>>
}

const names = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"]

const installed = (): Binary | null => {
  const folders = (process.env["PATH"] ?? "").split(delimiter).filter((folder) => folder !== "")
  const found = names.flatMap((name) => folders.map((folder) => join(folder, name))).find((file) => existsSync(file))
  return found === undefined ? null : { file: found, env: {} }
}

const fonts = (folder: string) =>
  `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>${folder}/fonts</dir><dir>/usr/share/fonts</dir><cachedir>${folder}/cache</cachedir></fontconfig>\n`

/** Unpacks the package's browser into a folder named by its version; of concurrent workers the first one's is used. */
const packaged = (): Binary => {
  const home = join(root, "node_modules", "@sparticuz", "chromium")
  const { version } = JSON.parse(readFileSync(join(home, "package.json"), "utf8")) as { readonly version: string }
  const cache = join(root, "node_modules", ".cache")
  const folder = join(cache, `chromium-${version}`)
  if (!existsSync(folder)) {
    mkdirSync(cache, { recursive: true })
    const fresh = mkdtempSync(join(cache, "chromium-"))
    const unpacked = (name: string) => brotliDecompressSync(readFileSync(join(home, "bin", name)))
    writeFileSync(join(fresh, "chromium"), unpacked("chromium.br"), { mode: 0o755 })
    for (const name of ["al2023.tar.br", "fonts.tar.br", "swiftshader.tar.br"]) {
      execFileSync("tar", ["-xf", "-", "--no-same-owner", "-C", fresh], { input: unpacked(name) })
    }
    writeFileSync(join(fresh, "fonts.conf"), fonts(folder))
    try {
      renameSync(fresh, folder)
    } catch (error) {
      rmSync(fresh, { recursive: true, force: true })
      if (!statSync(folder).isDirectory()) throw error
    }
  }
  return {
    file: join(folder, "chromium"),
    env: { LD_LIBRARY_PATH: join(folder, "lib"), FONTCONFIG_FILE: join(folder, "fonts.conf") },
  }
}

/** On a busy machine a browser takes long to start, and to show a page. */
const patienceMillis = 120_000

/** Launches a browser that the run's teardown ends, and whose data it deletes with the run's folder. */
const launch = async (): Promise<Browser> => {
  const run = inject("runFolder")
  const profile = mkdtempSync(join(run, "browser-"))
  const { env, file } = installed() ?? packaged()
  const browser = await puppeteer.launch({
    executablePath: file,
    headless: "shell",
    userDataDir: profile,
    // For our own pages only, and often as root in a container, where Chromium's sandbox is not available.
    args: ["--no-sandbox", "--disable-dev-shm-usage", "--no-zygote", "--disable-gpu"],
    env: { PATH: process.env["PATH"], HOME: profile, LANG: "en_GB.UTF-8", TZ: "UTC", ...env },
    timeout: patienceMillis,
    // With a listener of puppeteer's, the signal by which Vitest ends a worker would close the browser and no more.
    handleSIGHUP: false,
    handleSIGINT: false,
    handleSIGTERM: false,
  })
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
