/** Builds sdk/client for npm: one ESM file and its types. `deno task client` writes sdk/client/dist. */
import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import process from "node:process"
import { pathToFileURL } from "node:url"
import { buildPackage, installPackage, scriptOf, sdkPackage } from "./SdkPackage.ts"

const clientPackage = sdkPackage("client", "Client.ts", "client.js")

export const clientFolder = clientPackage.folder

/** The JavaScript of the package. */
export const clientScript = (): Promise<Uint8Array> => scriptOf(clientPackage)

/** Packs the package and installs the tarball into a folder with nothing else, both within `folder`. */
export const installClient = (folder: string) => installPackage(clientPackage, folder)

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

if (import.meta.url === pathToFileURL(process.argv[1]!).href) {
  await buildPackage(clientPackage, join(clientFolder, "dist"))
}
