/** Builds sdk/client for npm: one ESM file and its types. `deno task client` writes sdk/client/dist. */
import { build } from "esbuild"
import { execFileSync } from "node:child_process"
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import process from "node:process"
import { fileURLToPath, pathToFileURL } from "node:url"

export const clientFolder = fileURLToPath(new URL("../../sdk/client", import.meta.url))

/** The JavaScript of the package. */
export const clientScript = async (): Promise<Uint8Array> => {
  const entryPoints = [join(clientFolder, "Client.ts")]
  const built = await build({ entryPoints, bundle: true, minify: true, format: "esm", target: "es2022", write: false })
  return built.outputFiles[0]!.contents
}

/** Writes the package's files into `folder`. */
export const buildClient = async (folder: string): Promise<void> => {
  rmSync(folder, { recursive: true, force: true })
  const compiler = fileURLToPath(new URL("../../node_modules/typescript/bin/tsc", import.meta.url))
  const how =
    "--ignoreConfig --declaration --emitDeclarationOnly --allowImportingTsExtensions --target es2022 --types node"
  const options = [...how.split(" "), "--module", "nodenext", "--strict", "--skipLibCheck", "--outDir", folder]
  const command = [...("Deno" in globalThis ? ["run", "-A", "--node-modules-dir=manual", "--no-lock"] : []), compiler]
  execFileSync(process.execPath, [...command, ...options, join(clientFolder, "Client.ts")], { stdio: "inherit" })
  // A declaration file names its neighbours by what they are when they run.
  for (const name of readdirSync(folder)) {
    const path = join(folder, name)
    writeFileSync(path, readFileSync(path, "utf8").replaceAll(/"\.\/(\w+)\.ts"/g, '"./$1.js"'))
  }
  writeFileSync(join(folder, "client.js"), await clientScript())
}

/** Packs the package and installs the tarball into a folder with nothing else, both within `folder`. */
export const installClient = async (
  folder: string,
): Promise<{ readonly consumer: string; readonly tarball: string }> => {
  const pack = join(folder, "pack")
  const consumer = join(folder, "consumer")
  mkdirSync(consumer)
  await buildClient(join(pack, "dist"))
  for (const name of ["package.json", "README.md"]) cpSync(join(clientFolder, name), join(pack, name))
  const made = execFileSync("npm", ["pack", "--silent", "--pack-destination", folder], { cwd: pack, encoding: "utf8" })
  const tarball = join(folder, made.trim())
  writeFileSync(join(consumer, "package.json"), JSON.stringify({ type: "module", private: true }))
  execFileSync("npm", ["install", "--offline", "--no-audit", "--no-fund", tarball], { cwd: consumer, stdio: "pipe" })
  return { consumer, tarball }
}

const binaryOf = (name: string, version: string) =>
  execFileSync("npx", ["-y", "-p", `${name}@${version}`, "-c", `command -v ${name}`], { encoding: "utf8" }).trim()

/** The commands that run a module, on each runtime that the package names. */
export const clientRuntimes = (): ReadonlyArray<readonly [name: string, command: ReadonlyArray<string>]> => [
  ["Node 22", [binaryOf("node", "22.23.3")]],
  ["Node 24", [binaryOf("node", "24.21.0")]],
  ["Bun", [binaryOf("bun", "1.4.5"), "run"]],
  ["Deno", [binaryOf("deno", "2.9.6"), "run", "-A", "--no-lock"]],
]

/** The snippets of the README, in its order. */
export const clientSnippets = (): ReadonlyArray<string> =>
  [...readFileSync(join(clientFolder, "README.md"), "utf8").matchAll(/```ts\n([\s\S]*?)```/g)].map(([, text]) => text!)

if (import.meta.url === pathToFileURL(process.argv[1]!).href) await buildClient(join(clientFolder, "dist"))
