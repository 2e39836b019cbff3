/** Builds a package of sdk/ for npm: one ESM file, and the types that its entry names. */
import { build } from "esbuild"
import { execFileSync } from "node:child_process"
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import process from "node:process"
import { fileURLToPath } from "node:url"

export interface SdkPackage {
  readonly folder: string
  /** The module that users import. */
  readonly entry: string
  /** The name of the built file. */
  readonly script: string
}

const root = fileURLToPath(new URL("../..", import.meta.url))

export const sdkPackage = (name: string, entry: string, script: string): SdkPackage => ({
  folder: join(root, "sdk", name),
  entry,
  script,
})

/** The JavaScript of a package. */
export const scriptOf = async ({ entry, folder }: SdkPackage): Promise<Uint8Array> => {
  const entryPoints = [join(folder, entry)]
  const built = await build({ entryPoints, bundle: true, minify: true, format: "esm", target: "es2022", write: false })
  return built.outputFiles[0]!.contents
}

/** Writes the types of the entry, and of the modules that they import, into `folder`. */
const declare = ({ entry, folder: source }: SdkPackage, folder: string): void => {
  const made = mkdtempSync(join(root, "node_modules/.types-"))
  try {
    const compiler = join(root, "node_modules/typescript/bin/tsc")
    const how =
      "--ignoreConfig --declaration --emitDeclarationOnly --allowImportingTsExtensions --target es2022 --types node"
    const options = [...how.split(" "), "--module", "nodenext", "--strict", "--skipLibCheck", "--outDir", made]
    const command = [...("Deno" in globalThis ? ["run", "-A", "--node-modules-dir=manual", "--no-lock"] : []), compiler]
    const sources = ["--rootDir", join(root, "sdk"), join(source, entry)]
    execFileSync(process.execPath, [...command, ...options, ...sources], { stdio: "inherit" })
    const done = new Set<string>()
    const take = (path: string) => {
      if (done.has(path)) return
      done.add(path)
      const text = readFileSync(path.replace(/\.ts$/, ".d.ts"), "utf8")
      for (const [, imported] of text.matchAll(/"(\.[^"]+\.ts)"/g)) take(join(dirname(path), imported!))
      // A declaration file names its neighbours by what they are when they run.
      const name = basename(path).replace(/\.ts$/, ".d.ts")
      writeFileSync(join(folder, name), text.replaceAll(/"\.\/(\w+)\.ts"/g, '"./$1.js"'))
    }
    take(join(made, basename(source), entry))
  } finally {
    rmSync(made, { recursive: true, force: true })
  }
}

/** Writes the package's files into `folder`. */
export const buildPackage = async (sdk: SdkPackage, folder: string): Promise<void> => {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  declare(sdk, folder)
  writeFileSync(join(folder, sdk.script), await scriptOf(sdk))
}

/** Packs the package and installs the tarball into a folder with nothing else, both within `folder`. */
export const installPackage = async (
  sdk: SdkPackage,
  folder: string,
): Promise<{ readonly consumer: string; readonly tarball: string }> => {
  const pack = join(folder, "pack")
  const consumer = join(folder, "consumer")
  mkdirSync(consumer)
  await buildPackage(sdk, join(pack, "dist"))
  for (const name of ["package.json", "README.md"]) cpSync(join(sdk.folder, name), join(pack, name))
  const made = execFileSync("npm", ["pack", "--silent", "--pack-destination", folder], { cwd: pack, encoding: "utf8" })
  const tarball = join(folder, made.trim())
  writeFileSync(join(consumer, "package.json"), JSON.stringify({ type: "module", private: true }))
  execFileSync("npm", ["install", "--offline", "--no-audit", "--no-fund", tarball], { cwd: consumer, stdio: "pipe" })
  return { consumer, tarball }
}
