/**
 * The console's files, made of console/ by esbuild: hashed names, precompressed. `deno task console` makes them for a
 * package. In a checkout the program makes them where a source has changed since; esbuild is loaded then only.
 *
 * They lie in console/dist/<hash of the sources>/, which gets its name when it is whole: processes that build at the
 * same time do not disturb each other.
 */
import { createHash, randomUUID } from "node:crypto"
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises"
import { basename, join } from "node:path"
import process from "node:process"
import { fileURLToPath, pathToFileURL } from "node:url"
import { promisify } from "node:util"
import { brotliCompress, constants, gzip } from "node:zlib"
import { consolePage } from "./ConsoleShell.ts"

// The npm package is one folder of JavaScript, with the built console beside it.
const consolePath = import.meta.url.endsWith(".ts") ? "../../../console" : "console"

/** The console asks the API by the client. */
const clientFolder = fileURLToPath(new URL("../../../sdk/client", import.meta.url))

export const consoleFolder = fileURLToPath(new URL(consolePath, import.meta.url))

/** One file as it is sent. */
export interface ConsoleFile {
  readonly type: string
  readonly raw: Uint8Array
  readonly gzip: Uint8Array
  readonly br: Uint8Array
}

/** The files by their names; `index.html` is the shell. */
export type ConsoleFiles = ReadonlyMap<string, ConsoleFile>

export const typeOf = (name: string): string =>
  name.endsWith(".js") ? "text/javascript" : name.endsWith(".css") ? "text/css" : "text/html; charset=utf-8"

const sourcesOf = async (folder: string): Promise<ReadonlyArray<string>> => {
  const entries = await readdir(folder, { recursive: true }).catch(() => [])
  return entries.filter((name) => /\.(tsx?|css)$/.test(name) && !name.startsWith("dist")).sort()
}

/** The hash of everything that the files are made of; null where the sources are not there, as in a package. */
export const sourceHash = async (folder = consoleFolder): Promise<string | null> => {
  const names = await sourcesOf(folder)
  if (names.length === 0) return null
  const hash = createHash("sha256")
  const client = (await sourcesOf(clientFolder)).map((name) => join(clientFolder, name))
  const own = [fileURLToPath(new URL("ConsoleShell.ts", import.meta.url)), fileURLToPath(import.meta.url)]
  const also = [join(folder, "../package.json"), ...client, ...own]
  for (const path of [...names.map((name) => join(folder, name)), ...also]) {
    hash.update(path.slice(folder.length)).update("\0").update(await readFile(path)).update("\0")
  }
  return hash.digest("hex").slice(0, 16)
}

interface Output {
  readonly path: string
  readonly contents: Uint8Array
}

const bundled = async (folder: string) => {
  const esbuild = await import("esbuild")
  const result = await esbuild.build({
    absWorkingDir: folder,
    entryPoints: ["Main.tsx", "Style.css"],
    outdir: "out",
    bundle: true,
    splitting: true,
    minify: true,
    format: "esm",
    target: "es2022",
    jsx: "automatic",
    jsxImportSource: "preact",
    entryNames: "[name]-[hash]",
    chunkNames: "[name]-[hash]",
    legalComments: "none",
    metafile: true,
    write: false,
    logLevel: "silent",
  })
  // Its service is a process of its own.
  await esbuild.stop()
  return result
}

const pack = promisify(gzip)
const shrink = promisify(brotliCompress)

const written = async (folder: string, name: string, bytes: Uint8Array) => {
  const quality = { params: { [constants.BROTLI_PARAM_QUALITY]: 9, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } }
  await Promise.all([
    writeFile(join(folder, name), bytes),
    pack(bytes, { level: 9 }).then((packed) => writeFile(join(folder, `${name}.gz`), packed)),
    shrink(bytes, quality).then((packed) => writeFile(join(folder, `${name}.br`), packed)),
  ])
}

/** Builds into a folder of this name, and removes folders of other sources. */
const build = async (hash: string, folder: string): Promise<void> => {
  const { metafile, outputFiles } = await bundled(folder)
  const outputs = Object.entries(metafile.outputs)
  const [script, { imports }] = outputs.find(([, { entryPoint }]) => entryPoint === "Main.tsx")!
  const [style] = outputs.find(([, { entryPoint }]) => entryPoint === "Style.css")!
  const chunks = imports.filter(({ kind }) => kind === "import-statement").map(({ path }) => basename(path))
  const page = consolePage({ script: basename(script), style: basename(style), chunks })
  const files: ReadonlyArray<Output> = [
    ...outputFiles.map(({ contents, path }) => ({ path: basename(path), contents })),
    { path: "index.html", contents: new TextEncoder().encode(page) },
  ]
  const dist = join(folder, "dist")
  const fresh = join(dist, `fresh-${randomUUID()}`)
  await mkdir(fresh, { recursive: true })
  await Promise.all(files.map(({ contents, path }) => written(fresh, path, contents)))
  // Another process may have been first: its files are the same.
  await rename(fresh, join(dist, hash)).catch(() => rm(fresh, { recursive: true, force: true }))
  const old = (await folders(folder)).filter((name) => name !== hash && /^[0-9a-f]{16}$/.test(name))
  await Promise.all(old.map((name) => rm(join(dist, name), { recursive: true, force: true })))
}

const read = async (folder: string): Promise<ConsoleFiles> => {
  const names = (await readdir(folder)).filter((name) => /\.(js|css|html)$/.test(name))
  const files = names.map(async (name) => {
    const [raw, packed, br] = await Promise.all(["", ".gz", ".br"].map((end) => readFile(join(folder, name + end))))
    return [name, { type: typeOf(name), raw: raw!, gzip: packed!, br: br! }] as const
  })
  return new Map(await Promise.all(files))
}

const folders = (folder: string): Promise<ReadonlyArray<string>> => readdir(join(folder, "dist")).catch(() => [])

/** The only built folder of a package without sources. */
const shipped = async (folder: string): Promise<string> => {
  const [only] = (await folders(folder)).filter((name) => /^[0-9a-f]{16}$/.test(name))
  if (only === undefined) throw new Error("the console was not built: run `deno task console`")
  return only
}

/** Builds the files where their sources have changed; nothing in a package. */
export const buildConsole = async (folder = consoleFolder): Promise<void> => {
  const hash = await sourceHash(folder)
  if (hash === null || (await folders(folder)).includes(hash)) return
  await build(hash, folder)
}

/** The files of these sources (`sourceHash`), built where they are not yet. */
export const consoleFiles = async (hash: string | null, folder = consoleFolder): Promise<ConsoleFiles> => {
  const name = hash ?? await shipped(folder)
  const built = join(folder, "dist", name)
  try {
    return await read(built)
  } catch (cause) {
    if (hash === null) throw cause
    await build(hash, folder)
    return await read(built)
  }
}

if (import.meta.url === pathToFileURL(process.argv[1]!).href) {
  const files = await consoleFiles(await sourceHash())
  const sizes = [...files].map(([name, { gzip: packed }]) => `${name} ${(packed.length / 1_000).toFixed(1)} kB gzip`)
  process.stdout.write(`${sizes.sort().join("\n")}\n`)
}
