/** Builds sdk/client for npm: one ESM file and its types. `deno task client` writes sdk/client/dist. */
import { build } from "esbuild"
import { execFileSync } from "node:child_process"
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
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

if (import.meta.url === pathToFileURL(process.argv[1]!).href) await buildClient(join(clientFolder, "dist"))
