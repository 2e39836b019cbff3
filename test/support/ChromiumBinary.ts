/**
 * Chromium: the system's own, or else the one in the package @sparticuz/chromium, unpacked once beside the packages with
 * the few libraries and the font that a bare system lacks.
 */
import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs"
import { delimiter, dirname, join } from "node:path"
import process from "node:process"
import { fileURLToPath } from "node:url"
import { brotliDecompressSync } from "node:zlib"
import puppeteer, { type Browser } from "puppeteer-core"

const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..")

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

/** Starts a browser whose data lies in `profile`; `timeout` in milliseconds. */
export const startChromium = (profile: string, timeout: number): Promise<Browser> => {
  const { env, file } = installed() ?? packaged()
  return puppeteer.launch({
    executablePath: file,
    headless: "shell",
    userDataDir: profile,
    // For our own pages only, and often as root in a container, where Chromium's sandbox is not available.
    args: ["--no-sandbox", "--disable-dev-shm-usage", "--no-zygote", "--disable-gpu"],
    env: { PATH: process.env["PATH"], HOME: profile, LANG: "en_GB.UTF-8", TZ: "UTC", ...env },
    timeout,
    // With a listener of puppeteer's, the signal by which Vitest ends a worker would close the browser and no more.
    handleSIGHUP: false,
    handleSIGINT: false,
    handleSIGTERM: false,
  })
}
